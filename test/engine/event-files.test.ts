import { expect, test } from "bun:test";
import { appendFileSync, mkdirSync, renameSync, rmdirSync } from "node:fs";
import { makeLayout } from "../../src/engine/layout.ts";
import { EventFiles, eventPath } from "../../src/engine/records/event-files.ts";
import { type OperationEvent, sandboxSpid } from "../../src/service/wire/operation.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";

function openLog() {
  const layout = makeLayout(temporaryDirectory());
  const clock = createManualClock();
  const follow = (logs: EventFiles, hasEnded = async () => false) =>
    logs.read("operation", {
      afterId: 0,
      follow: true,
      signal: new AbortController().signal,
      idleMilliseconds: Number.POSITIVE_INFINITY,
      hasEnded,
    });
  return { layout, clock, logs: new EventFiles(layout, clock), follow };
}

async function typesOf(events: AsyncIterable<OperationEvent | undefined>): Promise<(string | undefined)[]> {
  const types: (string | undefined)[] = [];
  for await (const event of events) types.push(event?.type);
  return types;
}

test("a follower gets each event once, whether it waits for it or not", async () => {
  // The clock stands still, so no follower looks again later.
  const { logs, follow } = openLog();
  logs.create("operation");
  logs.append("operation", sandboxSpid, "init", {});
  const types = [typesOf(follow(logs)), typesOf(follow(logs))];
  for (const type of ["spawn", "stdout", "stderr"]) {
    await Bun.sleep(1);
    logs.append("operation", sandboxSpid, type, { value: "ö" });
  }
  logs.append("operation", sandboxSpid, "exit", {});
  await Bun.sleep(1);
  logs.append("operation", sandboxSpid, "shutdown", {});
  logs.complete("operation", {});
  const all = ["init", "spawn", "stdout", "stderr", "exit", "shutdown", "completion"];
  expect(await Promise.all(types)).toEqual([all, all]);
});

test("a follower gets what another process appends while it asks whether the operation has ended", async () => {
  const { layout, clock, logs, follow } = openLog();
  const other = new EventFiles(layout, clock);
  logs.append("operation", sandboxSpid, "exit", {});
  const events = follow(other, async () => {
    logs.complete("operation", {});
    return true;
  });
  const types = typesOf(events);
  await clock.sleeping();
  await clock.advance(100);
  expect(await types).toEqual(["exit", "completion"]);
});

test("a log that could not be written is continued after the line that a failed write has left unfinished", async () => {
  const { layout, logs, follow } = openLog();
  logs.append("operation", sandboxSpid, "init", {});
  const path = eventPath(layout, "operation");
  appendFileSync(path, '{"id":2,');
  renameSync(path, `${path}.kept`);
  mkdirSync(path);
  expect(() => logs.append("operation", sandboxSpid, "stdout", {})).toThrow("EISDIR");
  rmdirSync(path);
  renameSync(`${path}.kept`, path);
  logs.complete("operation", {});
  expect(await typesOf(follow(logs))).toEqual(["init", "completion"]);
});
