/** The type of a path of an image, on the engine, which lists names, and on a service that lists whole paths. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Service } from "../../src/service/client.ts";
import { TestEngine } from "../support/engine.ts";
import { clientOf } from "./client.ts";

let engine: TestEngine;
let service: Service;
let image: string;
beforeAll(async () => {
  engine = await TestEngine.open();
  service = clientOf("http://engine", {
    fetch: (input, init) => engine.engine.fetch(input instanceof Request ? input : new Request(input, init)),
  }).service;
  const base = await engine.importBase();
  image =
    (await engine.run(base, "mkdir -p /only/only && touch /only/only/only && ln -s only /link")).image ?? "";
});
afterAll(() => engine.close());

test.each([
  ["/", "directory"],
  ["/etc", "directory"],
  ["/etc/passwd", "file"],
  ["/bin/sh", "file"],
  ["/only", "directory"],
  ["/only/only", "directory"],
  ["/only/only/only", "file"],
  ["/link", "directory"],
  ["/none", undefined],
] as const)("%s: %s", async (path, type) => {
  expect(await service.pathType(image, path)).toBe(type as "file");
});
