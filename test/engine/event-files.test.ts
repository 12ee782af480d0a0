import { expect, test } from "bun:test";
import { makeLayout } from "../../src/engine/layout.ts";
import { EventFiles } from "../../src/engine/records/event-files.ts";
import { sandboxSpid } from "../../src/service/wire/operation.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";

test("a follower gets events that are appended while it asks whether the operation has ended", async () => {
  const logs = new EventFiles(makeLayout(temporaryDirectory()), createManualClock());
  logs.append("operation", sandboxSpid, "exit", {});
  const events = logs.read("operation", {
    afterId: 0,
    follow: true,
    signal: new AbortController().signal,
    idleMilliseconds: Number.POSITIVE_INFINITY,
    async hasEnded() {
      logs.append("operation", sandboxSpid, "shutdown", {});
      logs.complete("operation", {});
      return false;
    },
  });
  const types: (string | undefined)[] = [];
  // The clock stands still, so the follower does not look again later.
  for await (const event of events) types.push(event?.type);
  expect(types).toEqual(["exit", "shutdown", "completion"]);
});
