/** Untrusted text as it is shown. */
import { describe, expect, test } from "bun:test";
import { openSpoolFile } from "../src/cli/builds/progress.ts";
import { jsonText } from "../src/terminal/json-text.ts";
import { createLog } from "../src/terminal/log.ts";
import { createPlainProgress } from "../src/terminal/progress.ts";
import { formatLogLines, formatOutput } from "../src/terminal/terminal-text.ts";
import { visible, visibleLines } from "../src/visible.ts";
import { createManualClock } from "./fake-service/manual-clock.ts";
import { temporaryDirectory } from "./support/bough.ts";

test.each([
  ["plain text, as it is", "plain text, as it is"],
  ["ünïcode 日本語 👍", "ünïcode 日本語 👍"],
  // Joined, with a skin's colour, with a variation selector.
  ["👩‍💻 👩🏽‍💻 ❤️‍🔥", "👩‍💻 👩🏽‍💻 ❤️‍🔥"],
  ["a\u200db", "a\\u200db"],
  ["👩\u200db", "👩\\u200db"],
  ["\u001b[2J\u009b\u0000\u007f", "\\x1b[2J\\x9b\\x00\\x7f"],
  ["a\n\r\tb", "a\\n\\r\\tb"],
  ["\u202e\u2066\u061c\u2028", "\\u202e\\u2066\\u061c\\u2028"],
  ["\u{e0041}", "\\u{e0041}"],
  ["\ud800", "\\ud800"],
  ["a ##[error]b", "a ##\\x5berror]b"],
])("%j is shown as %j", (text, shown) => expect(visible(text)).toBe(shown));

test.each([
  ["one\ntwo", "one\ntwo"],
  ["one\n[INFO] two", "one\n  | [INFO] two"],
  ["one\n  [WARN] two\n[ERROR] three", "one\n  |   [WARN] two\n  | [ERROR] three"],
  ["one\r[INFO] two", "one\\r[INFO] two"],
  ["[INFO] one", "[INFO] one"],
  ["one\n ::error::two", "one\n  |  ::error::two"],
  ["one\ntwo ##[error]", "one\ntwo ##\\x5berror]"],
])("the lines of %j are %j", (text, lines) => expect(visibleLines(text)).toBe(lines));

test("JSON text has no character that controls a terminal, and parses to the same value", () => {
  const value = { "a\u009b\u202e": ["##[error]", "\u{e0041}\ufeff\u2028\n", "👩‍💻", "\ud800"] };
  for (const indent of [0, 2]) {
    const text = jsonText(value, { indent });
    expect(text).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|##\[/u);
    expect(JSON.parse(text)).toEqual(value);
  }
});

describe("a command's output", () => {
  const stream = { isTerminal: true, hasColor: true, columns: 80 };
  function show(output: string): string {
    let written = "";
    const write = (text: string) => {
      written += text;
    };
    const line = (text: string) => write(formatLogLines(text, stream));
    const progress = createPlainProgress({
      log: createLog("info", line),
      clock: createManualClock(),
      logLevel: "info",
      write: { line, output: (text) => write(formatOutput(text, stream)) },
      openSpoolFile: () => openSpoolFile(temporaryDirectory()),
    });
    const place = { stage: { index: 0, name: null }, step: 1 };
    const all = { bytes: output.length, truncated: false };
    progress.emit({ type: "output", ...place, chunk: { stream: "stdout", text: output } });
    progress.emit({ type: "ran", ...place, operation: "", succeeded: true, stdout: all, stderr: all });
    return written;
  }

  test("follows its header unchanged, with its own colours and none of the log's", () => {
    expect(show("[INFO] tagged x as y\n\u001b[31mred\u001b[0m\n")).toBe(
      "\u001b[2m[INFO]\u001b[0m stdout:\n[INFO] tagged x as y\n\u001b[31mred\u001b[0m\u001b[0m\n",
    );
  });

  test("does not control the terminal", () => {
    expect(show("a\u001b]0;title\u0007\u001b[2Jb\u009b31m\n")).toBe(
      "\u001b[2m[INFO]\u001b[0m stdout:\nab31m\n",
    );
  });
});
