/** What expressions come to, and what is wrong with them. `test/cases/bake/hcl-*` holds whole files against buildx. */
import { describe, expect, test } from "bun:test";
import { HclError } from "../../src/hcl/hcl-error.ts";
import { evaluateText } from "./evaluate-text.ts";

const variables = {
  items: [{ name: "a", size: 1 }, { name: "b" }],
  versions: { one: "1.0", two: "2.0" },
  list: ["x", "y"],
};

describe("an expression has a value", () => {
  test.each<[string, string]>([
    // A name may have dashes: a difference needs spaces.
    ["a-b", "no variable"],
    ["5 -2", "3"],
    ["1.5e3", "1500"],
    ["list[0]", '"x"'],
    ["list.1", '"y"'],
    ['versions["two"]', '"2.0"'],
    ["items[*].name", '["a","b"]'],
    ["items.*.name", '["a","b"]'],
    ["[for item in items : item.name if can(item.size)]", '["a"]'],
    ["{ for key, value in versions : value => key }", '{"1.0":"one","2.0":"two"}'],
    ["true ? 1 : missing", "1"],
    ["false && missing", "false"],
    ["missing && false", "false"],
    ["true || missing", "true"],
    ['true ? "a" : 1', '"a"'],
    ["[1, 2,]", "[1,2]"],
    ["{ a = 1, b : 2\n c = 3 }", '{"a":1,"b":2,"c":3}'],
    ["{ (list[0]) = 1 }", '{"x":1}'],
    ["max(list_of_numbers...)", "no variable"],
    ["max([1, 3]...)", "3"],
    ["timestamp()", '"2026-01-31T15:04:05Z"'],
    ["homedir()", '"/home/user"'],
    ["try(missing, list[9], 7)", "7"],
    ['"${list[0]}-${1 + 1}"', '"x-2"'],
    ['"$${literal} %%{too} $ %"', '"${literal} %{too} $ %"'],
    ['"\\u00e9\\U0001F600"', '"é😀"'],
    ["1 == 1.0", "true"],
    ['1 == "1"', "false"],
    ["[1] == [1]", "true"],
    ["null == null", "true"],
    ["!true == false", "true"],
    ["-2 + 5", "3"],
    ["1 + 2 * 3 % 2", "1"],
    ["(\n1 +\n2\n)", "3"],
    ["/* a */ 1 # b", "1"],
  ])("%s", (text, expected) => {
    if (expected === "no variable")
      expect(() => evaluateText(text, variables)).toThrow("there is no variable");
    else expect(evaluateText(text, variables)).toBe(expected);
  });
});

describe("an error has a place and says what would be right", () => {
  test.each<[string, string, string, string | undefined]>([
    ["uper(list[0])", "there is no function uper", "uper", "Did you mean upper?"],
    ["lst", "there is no variable lst", "lst", "Did you mean list?"],
    ["versions.tow", 'the object has no "tow"', ".tow", "Did you mean two?"],
    ["list[2]", "there is no element 2", "[2]", "There are 2, the first one is 0."],
    ["list[0.5]", "the index is not a whole number", "[0.5]", undefined],
    [
      "items.name",
      "there is no name in a tuple",
      ".name",
      "Write [0].name for one element, or [*].name for all.",
    ],
    ['"a${null}"', "null can't be in a text", "null", undefined],
    ['"a${[1]}"', "string required, but have tuple", "[1]", undefined],
    ["upper()", "upper: the argument str is missing", "upper()", "upper(str)"],
    ["upper(1, 2)", "upper has 1 argument", "2", "upper(str)"],
    ["upper([])", "invalid value for str: string required, but have tuple", "[]", undefined],
    ["upper(null)", "invalid value for str: it must not be null", "null", undefined],
    ['1 + "a"', "a number is required", '"a"', undefined],
    ["1 / 0 - 1 / 0", "can't compute sum of opposing infinities", "1 / 0 - 1 / 0", undefined],
    ["[] ? 1 : 2", "bool required, but have tuple", "[]", undefined],
    [
      "true ? {a = 1} : [1]",
      "the values for true and for false have different types: object and tuple",
      "{a = 1} : [1]",
      "Objects need the same attributes.",
    ],
    [
      "{ for x in [1, 1] : x => x }",
      'two elements have the key "1"',
      "x",
      "With ... after the value, values with the same key are collected.",
    ],
    ["[for x in 5 : x]", "for can't iterate over a number", "5", undefined],
    [
      "{ a.b = 1 }",
      "ambiguous key",
      "a.b",
      "Put a reference in parentheses, and a name with dots in quotes.",
    ],
    [
      'regex("(", "a")',
      "regex: invalid regular expression: error parsing regexp: missing closing ): `(`",
      '"("',
      undefined,
    ],
    ['format("%d", "x")', "format: %d: a number is required", 'format("%d", "x")', undefined],
    [
      'format("%s")',
      "format: there is no argument for %s: 1 would be needed, and there are 0",
      'format("%s")',
      undefined,
    ],
    ["range(2000)", "range: there would be more than 1024 numbers", "range(2000)", undefined],
    ['byteslen("x")', "invalid value for buf: bytes required, but have string", '"x"', undefined],
  ])("%s", (text, message, place, hint) => {
    const error = errorOf(() => evaluateText(text, variables));
    const { range } = error;
    expect({
      message: error.message,
      place: range?.source.text.slice(range.start, range.end),
      hint: error.hint,
    }).toEqual({ message, place, hint });
  });
});

describe("a text that is no expression is refused at its place", () => {
  test.each<[string, string, number]>([
    ["", "an expression is required here, not the end", 0],
    ["1 +", "an expression is required here, not the end", 3],
    ["[1", "this [ is not closed by ]", 0],
    ["upper(1", "this ( is not closed by )", 5],
    ["{ a 1 }", "an equals sign and a value are required after a key", 4],
    ["a ? b", "a colon and the value for false are required", 5],
    ["'a'", 'invalid character "\'"', 0],
    ["a & b", 'invalid character "&"', 2],
    ['"a', "the text has no end", 2],
    ['"a\nb"', "a text in quotes must end in its line", 2],
    ['"\\q"', "invalid escape sequence \\q", 1],
    ['"${a"', "a closing brace is required for ${", 4],
    ['"%{ fi }"', 'unknown directive "fi"', 4],
    ['"%{ if true }"', "endif is missing for this if", 1],
    ['"%{ endfor }"', "unexpected endfor: no directive before it is open", 1],
    ["[for x in y => x]", "a colon is required after what for goes through", 12],
    ["[for x in y : x => x]", "only an object has keys: for in brackets makes a tuple", 16],
    ["{for x in y : x}", "a key is required, as in: {for item in items: item.name => item}", 14],
    ["1.2.3", "invalid number 1.2.3", 0],
    ["a.", "a name is required after the dot", 2],
    ["<<END\nx\n", "the text has no end", 8],
    ["1 2", "extra characters after the expression", 2],
  ])("%j", (text, message, offset) => {
    const { message: given, range } = errorOf(() => evaluateText(text));
    expect({ message: given, offset: range?.start }).toEqual({ message, offset });
  });
});

function errorOf(action: () => unknown): HclError {
  try {
    action();
  } catch (error) {
    if (error instanceof HclError) return error;
    throw error;
  }
  throw new Error("there is no error");
}
