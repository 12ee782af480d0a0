import { expect, test } from "bun:test";
import { ProcessInput } from "../../src/engine/sandbox/process-input.ts";
import type { InputSink } from "../../src/programs/helper.ts";

/** Fails later, because a pipe reports its error after the write. */
const refuse = (): Promise<never> => Promise.reject(new Error("EPIPE: broken pipe, write"));

test.each<[string, InputSink]>([
  ["the write fails", { write: refuse, flush: () => 0, end: () => 0 }],
  ["flush and end fail", { write: () => 0, flush: refuse, end: refuse }],
  ["every call fails", { write: refuse, flush: refuse, end: refuse }],
])("writing to a process that has closed its input is not an error: %s", async (_, sink) => {
  const bytes = new Uint8Array(4);
  await new ProcessInput().connect(sink, { bytes, close: true });
  const open = new ProcessInput();
  await open.connect(sink, { bytes, close: false });
  // An unhandled rejection would be reported by now.
  await Bun.sleep(0);
  expect(open.write({ bytes, close: true })).toBe(true);
});
