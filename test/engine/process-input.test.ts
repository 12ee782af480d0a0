import { expect, test } from "bun:test";
import { ProcessInput } from "../../src/engine/processes/process-input.ts";
import type { InputSink } from "../../src/engine/system/helper.ts";

/** Whether the pipe takes it is known only later. */
const refuse = (): Promise<never> => Promise.reject(new Error("EPIPE: broken pipe, write"));

test.each<[string, InputSink]>([
  ["the write", { write: refuse, flush: () => 0, end: () => 0 }],
  ["the rest", { write: () => 0, flush: refuse, end: refuse }],
  ["all of it", { write: refuse, flush: refuse, end: refuse }],
])("a process that has closed its input is not an error: %s", async (_, sink) => {
  const bytes = new Uint8Array(4);
  await new ProcessInput().connect(sink, { bytes, close: true });
  const open = new ProcessInput();
  await open.connect(sink, { bytes, close: false });
  // What nobody has heard of would be told by now.
  await Bun.sleep(0);
  expect(open.write({ bytes, close: true })).toBe(true);
});
