/** The type of a path of an image, on the engine, which lists names, and on a service that lists whole paths. */
import { expect, test } from "bun:test";
import { openSharedEngine } from "../support/shared-engine.ts";
import { clientOf } from "./client.ts";

const { engine, base } = await openSharedEngine();
const { service } = clientOf("http://engine", {
  fetch: (input, init) => engine.engine.fetch(input instanceof Request ? input : new Request(input, init)),
});
const made = await engine.run(base, "mkdir -p /only/only && touch /only/only/only && ln -s only /link");
const image = made.image ?? "";

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
