/** An event that can't be written, as on a full disk, fails only its own operation. An unhandled rejection would fail the test. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { OperationRecord } from "../../src/service/wire/operation.ts";
import { TestEngine } from "../support/engine.ts";

let engine: TestEngine;
let base: string;

beforeAll(async () => {
  engine = await TestEngine.open();
  base = await engine.importBase();
});
afterAll(() => engine.close());

/** Puts a directory in the place of an operation's log, as soon as that has an event of this type. */
async function loseEventsAfter(type: string, { uuid }: { uuid: string }): Promise<void> {
  const log = join(engine.directory, "events", `${uuid}.ndjson`);
  while (!readFileSync(log, "utf8").includes(`"type":"${type}"`)) await Bun.sleep(1);
  rmSync(log);
  mkdirSync(log);
}

async function ended({ uuid }: { uuid: string }): Promise<OperationRecord> {
  for (;;) {
    const operation = await engine.json<OperationRecord>("GET", `/v1/operations/${uuid}`);
    if (operation.status !== "EXECUTING") return operation;
    await Bun.sleep(1);
  }
}

test("the start of a silent command", async () => {
  const operation = await engine.start({ image: base, command: "sleep 0.1" });
  await loseEventsAfter("init", operation);
  expect(await ended(operation)).toMatchObject({
    status: "FAILED",
    error: expect.stringContaining("EISDIR"),
  });
});

test("the start and the output of a process beside the command", async () => {
  const operation = await engine.start({ image: base, command: "sleep 100" });
  await loseEventsAfter("spawn", operation);
  const path = `/v1/operations/${operation.uuid}`;
  const beside = await engine.fetch("POST", `${path}/subprocesses`, {
    command: "echo x; echo y",
    shell: true,
  });
  await beside.body?.cancel();
  await engine.fetch("DELETE", path);
  expect((await ended(operation)).status).toBe("CANCELLED");
});
