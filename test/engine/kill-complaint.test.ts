import { expect, test } from "bun:test";
import { KillMessageFilter } from "../../src/engine/sandbox/supervise.ts";

const message = "unshare: sigprocmask unblock failed: Invalid argument\n";

test.each([
  ["no output", [], ""],
  ["removes a message in the same chunk as output", [`mine\n${message}`], "mine\n"],
  ["removes a message in a separate chunk", ["mine\n", message], "mine\n"],
  [
    "removes a message in the chunks that the C library writes",
    ["mine\nunshare: ", message.slice(9, -19), ": Invalid argument\n"],
    "mine\n",
  ],
  ["removes a message that comes byte by byte", [...`mine\n${message}`], "mine\n"],
  ["keeps output that begins like a message", ["run ", "uns", "hared"], "run unshared"],
  ["keeps last output that begins like a message", ["unshare: sig"], "unshare: sig"],
  ["keeps a message that is followed by other output", [message, "mine\n"], `${message}mine\n`],
  ["removes only the last of two messages", [message, message], message],
])("%s", (_, chunks, kept) => {
  const filter = new KillMessageFilter();
  const passed = chunks.map((chunk) =>
    Buffer.from(filter.pass(Buffer.from(chunk), { isKilled: true })).toString(),
  );
  expect(passed.join("") + Buffer.from(filter.end()).toString()).toBe(kept);
});

test("output of a command that is not yet killed is held back only from a message's first chunk on", () => {
  const filter = new KillMessageFilter();
  const isKilled = false;
  expect(Buffer.from(filter.pass(Buffer.from("go on? u"), { isKilled })).toString()).toBe("go on? u");
  expect(filter.pass(Buffer.from(message), { isKilled })).toHaveLength(0);
  expect(filter.isComplete).toBe(true);
});
