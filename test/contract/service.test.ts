/** The engine keeps the contract of the seam, in this process and behind requests over HTTP, by the same table. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Service } from "../../src/service/client.ts";
import { clientOf } from "../service/client.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { TestEngine } from "../support/engine.ts";
import { cases, type Seam } from "./service-cases.ts";

const engine = await TestEngine.open();
const base = await engine.importBase();
const directory = mkdtempSync(join(tmpdir(), "bough-seam-"));
const importable = await makeBusyboxLayout(join(directory, "importable"));
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: engine.engine.fetch });
afterAll(async () => {
  await server.stop(true);
  await engine.close();
  rmSync(directory, { recursive: true, force: true });
});

const ways: readonly [name: string, connect: (signal?: AbortSignal) => Service][] = [
  ["in this process", (signal) => engine.service(signal && { signal })],
  ["over HTTP", (signal) => clientOf(server.url.href, signal && { signal }).service],
];

describe.each(ways)("the engine %s", (_, connect) => {
  const seam: Seam = {
    ...{ service: connect(), base, importable, directory },
    interruptible() {
      const interrupt = new AbortController();
      const reason = new Error("interrupted");
      return { service: connect(interrupt.signal), interrupt: () => interrupt.abort(reason) };
    },
  };

  test.each(cases)("%s", (_name, run) => run(seam), 60_000);
});

test("only the one in this process reads files where they are", () => {
  expect(ways.map(([, connect]) => connect().isInThisProcess)).toEqual([true, false]);
});
