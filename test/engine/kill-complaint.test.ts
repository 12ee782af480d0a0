import { expect, test } from "bun:test";
import { ComplaintFilter } from "../../src/engine/sandbox/supervise.ts";

const complaint = "unshare: sigprocmask unblock failed: Invalid argument\n";

test.each([
  ["no output", [], ""],
  ["removes a complaint in the same chunk as output", [`mine\n${complaint}`], "mine\n"],
  ["removes a complaint in a separate chunk", ["mine\n", complaint], "mine\n"],
  [
    "removes a complaint in the chunks that the C library writes",
    ["mine\nunshare: ", complaint.slice(9, -19), ": Invalid argument\n"],
    "mine\n",
  ],
  ["removes a complaint that comes byte by byte", [...`mine\n${complaint}`], "mine\n"],
  ["keeps output that begins like a complaint", ["run ", "uns", "hared"], "run unshared"],
  ["keeps last output that begins like a complaint", ["unshare: sig"], "unshare: sig"],
  ["keeps a complaint that is followed by other output", [complaint, "mine\n"], `${complaint}mine\n`],
  ["removes only the last of two complaints", [complaint, complaint], complaint],
])("%s", (_, chunks, kept) => {
  const filter = new ComplaintFilter();
  const passed = chunks.map((chunk) =>
    Buffer.from(filter.pass(Buffer.from(chunk), { isKilled: true })).toString(),
  );
  expect(passed.join("") + Buffer.from(filter.end()).toString()).toBe(kept);
});

test("output of a command that is not yet killed is held back only from a complaint's first chunk on", () => {
  const filter = new ComplaintFilter();
  const isKilled = false;
  expect(Buffer.from(filter.pass(Buffer.from("go on? u"), { isKilled })).toString()).toBe("go on? u");
  expect(filter.pass(Buffer.from(complaint), { isKilled })).toHaveLength(0);
  expect(filter.wasMade).toBe(true);
});
