/** Parsing of `--file`, `--env`, times, branch names and partial command lines. */
import { describe, expect, test } from "bun:test";
import { parseTime } from "../../src/cli/command-line/option-values.ts";
import { splitPartialLine } from "../../src/cli/completion/candidates.ts";
import { checkBranchName } from "../../src/cli/references/session-argument.ts";
import { readEnvironment } from "../../src/cli/run/execution-options.ts";
import { parseFileArgument } from "../../src/cli/run/file-argument.ts";
import { refuseInteractiveShell } from "../../src/cli/run/image-command.ts";

describe("--file", () => {
  const plain = { path: undefined, uid: 0, gid: 0, mode: undefined };
  test.each([
    ["a", { ...plain, host: "a" }],
    ["./a:/b", { ...plain, host: "./a", path: "/b" }],
    ["a:b/c", { ...plain, host: "a", path: "b/c" }],
    ["a:/b:u1000", { ...plain, host: "a", path: "/b", uid: 1000 }],
    ["a:/b:u1:g2:m0755", { host: "a", path: "/b", uid: 1, gid: 2, mode: 0o755 }],
    ["a:m600:u5", { ...plain, host: "a", uid: 5, mode: 0o600 }],
    ["a:/b:c", { ...plain, host: "a", path: "/b:c" }],
    ["C:\\a b:/b", { ...plain, host: "C:\\a b", path: "/b" }],
    ["a:/u1", { ...plain, host: "a", path: "/u1" }],
  ])("%s", (text, expected) => expect(parseFileArgument(text)).toEqual(expected));

  test.each(["", ":/b", "a:", ":u1", "a:/b:m999", "a:/b:m06444:u1"])("%p is refused", (text) => {
    expect(() => parseFileArgument(text)).toThrow("--file takes HOST[:PATH][:uN][:gN][:mMODE]");
  });
});

describe("--env", () => {
  test("keeps given values, and takes the value of a name alone from bough's environment", () => {
    expect(readEnvironment(["A=1", "B=a=b", "C=", "HERE"], { HERE: "yes" })).toEqual({
      A: "1",
      B: "a=b",
      C: "",
      HERE: "yes",
    });
  });
});

describe("--since", () => {
  const clock = { now: () => Date.UTC(2026, 0, 10) };
  test.each([
    ["2026-01-02", "2026-01-02T00:00:00.000Z"],
    ["2026-01-02T03:04:05+01:00", "2026-01-02T02:04:05.000Z"],
    ["90s", "2026-01-09T23:58:30.000Z"],
    ["30m", "2026-01-09T23:30:00.000Z"],
    ["24h", "2026-01-09T00:00:00.000Z"],
    ["7d", "2026-01-03T00:00:00.000Z"],
    ["1w", "2026-01-03T00:00:00.000Z"],
  ])("%s", (text, iso) => expect(parseTime(text, "--since", clock)).toBe(iso));

  test.each(["", "7", "7 d", "soon", "2026", "2026-13-45", "-1h"])("%p is refused", (text) => {
    expect(() => parseTime(text, "--since", clock)).toThrow("--since takes a date or an age");
  });
});

test.each(["main", "try/2", "a.b_c-d:e@f", "v1", "ü"])("%s is a valid branch name", (name) => {
  expect(checkBranchName(name)).toBe(name);
});
test.each(["", "12", "HEAD", "layer:abc", "-x", "a b", "a\nb", "*", "x".repeat(200)])(
  "%p is not a valid branch name",
  (name) => {
    expect(() => checkBranchName(name)).toThrow("invalid branch name");
  },
);

describe("the words of a partial command line", () => {
  test.each<[string, string[], string]>([
    ["bough", [], ""],
    ["bough ", [], ""],
    ["bough se", [], "se"],
    ["bough -S k use tag:a", ["-S", "k", "use"], "tag:a"],
    ["bough run -- 'a b' \"c", ["run", "--", "a b"], "c"],
    ["  bough  cat   a\\ b", ["cat"], "a b"],
    ["bough use ''", ["use"], ""],
  ])("%s", (line, words, current) => expect(splitPartialLine(line)).toEqual({ words, current }));
});

describe("a shell without a command", () => {
  test.each(["bash", "/bin/sh -l", "zsh -il"])("%s at a terminal is refused", (line) => {
    expect(() => refuseInteractiveShell(line.split(" "), true)).toThrow(
      "has no terminal, and would end immediately",
    );
  });

  test.each([
    [["bash", "-c", "ls"], true],
    [["sh", "script.sh"], true],
    [["bash"], false],
    [["ls"], true],
  ])("%p is run (at a terminal: %p)", (words, isTerminal) => {
    expect(() => refuseInteractiveShell(words, isTerminal)).not.toThrow();
  });
});
