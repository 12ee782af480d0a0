import { expect, test } from "bun:test";
import { ComplaintFilter } from "../../src/engine/sandbox/kill-complaint.ts";

const complaint = "unshare: sigprocmask unblock failed: Invalid argument\n";

test.each([
  ["nothing was said", [], ""],
  ["all in one piece", [`mine\n${complaint}`], "mine\n"],
  ["a piece of its own", ["mine\n", complaint], "mine\n"],
  [
    "as the C library writes it",
    ["mine\nunshare: ", complaint.slice(9, -19), ": Invalid argument\n"],
    "mine\n",
  ],
  ["byte by byte", [...`mine\n${complaint}`], "mine\n"],
  ["a beginning of it is the command's own", ["run ", "uns", "hared"], "run unshared"],
  ["a beginning of it is the command's last word", ["unshare: sig"], "unshare: sig"],
  ["the command's own before more", [complaint, "mine\n"], `${complaint}mine\n`],
  ["once, not twice", [complaint, complaint], complaint],
])("%s", (_, chunks, kept) => {
  const filter = new ComplaintFilter();
  const passed = chunks.map((chunk) =>
    Buffer.from(filter.pass(Buffer.from(chunk), { isKilled: true })).toString(),
  );
  expect(passed.join("") + Buffer.from(filter.end()).toString()).toBe(kept);
});

test("of a command that is not known to be killed nothing shorter than the first piece waits", () => {
  const filter = new ComplaintFilter();
  const isKilled = false;
  expect(Buffer.from(filter.pass(Buffer.from("go on? u"), { isKilled })).toString()).toBe("go on? u");
  expect(filter.pass(Buffer.from(complaint), { isKilled })).toHaveLength(0);
  expect(filter.wasMade).toBe(true);
});
