/** When colours are used, and for what. */
import { expect, test } from "bun:test";
import { paintLevel, wantsColor } from "../../src/terminal/color.ts";

test.each<[Record<string, string>, boolean, boolean]>([
  [{}, true, true],
  [{}, false, false],
  [{ NO_COLOR: "1" }, true, false],
  [{ NO_COLOR: "" }, true, true],
  [{ CI: "true" }, true, false],
  [{ CI: "false" }, true, true],
  [{ TERM: "dumb" }, true, false],
  [{ FORCE_COLOR: "1" }, false, true],
  [{ FORCE_COLOR: "1", CI: "1", NO_COLOR: "1" }, false, true],
  [{ FORCE_COLOR: "0" }, true, false],
])("%p, terminal %p: %p", (environment, isTerminal, colors) => {
  expect(wantsColor(environment, isTerminal)).toBe(colors);
});

test("only the level is painted", () => {
  expect(paintLevel("[ERROR] [WARN] x\n")).toBe("\u001b[31m[ERROR]\u001b[0m [WARN] x\n");
  expect(paintLevel('{"error": "[ERROR]"}\n')).toBe('{"error": "[ERROR]"}\n');
});
