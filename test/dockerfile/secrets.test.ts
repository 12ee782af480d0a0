import { describe, expect, test } from "bun:test";
import { secretsAmong } from "../../src/dockerfile/secrets.ts";
import { expandExecWords, expandRunLine } from "../../src/dockerfile/words/run-substitution.ts";

const value = "p4ss w'rd+1";
const variables: [string, string | undefined][] = [
  ["API_TOKEN", value],
  ["SHORT_SECRET", "abc"],
  ["KEY", "an example"],
  ["PUBLIC_KEY", "known to all"],
  ["EMPTY_PASSWORD", ""],
  ["UNSET_PASSWORD", undefined],
  ["DERIVED", `before ${value} after`],
  ["PROXY", "http://user:word@proxy:1"],
  ["PLAIN", "plain"],
];

describe("secretsAmong", () => {
  const secrets = secretsAmong(variables);

  test.each([
    ["API_TOKEN", true],
    ["SHORT_SECRET", true],
    ["DERIVED", true],
    ["PROXY", true],
    ["KEY", false],
    ["PUBLIC_KEY", false],
    ["EMPTY_PASSWORD", false],
    ["UNSET_PASSWORD", false],
    ["PLAIN", false],
    ["constructor", false],
  ])("%s: %p", (name, expected) => {
    expect(secrets.has(name)).toBe(expected);
  });

  test.each([
    [`curl -H "${value}" x`, 'curl -H "***" x'],
    ["su -c 'curl p4ss w'\\''rd+1'", "su -c 'curl ***'"],
    [`http://h/?a=${encodeURIComponent(value)}&b=1`, "http://h/?a=***&b=1"],
    ["abc is too short to be looked for", "abc is too short to be looked for"],
    ["OTHER_TOKEN=x1y2 make", "OTHER_TOKEN=*** make"],
  ])("%p is shown as %p", (text, expected) => {
    expect(secrets.mask(text)).toBe(expected);
  });

  test("masks each line of a value with several: output is cut between lines", () => {
    const key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nshort\n-----END KEY-----\n";
    const { mask } = secretsAmong([["SIGNING_KEY", key]]);
    expect(mask(`cat: ${key}`)).toBe("cat: ***");
    expect(mask("a MIIEvQIBADANBg b\nshort")).toBe("a *** b\nshort");
    const lines = Array.from({ length: 2000 }, (_, index) => `certificate line ${index}`);
    const many = secretsAmong([["CERTIFICATES_SECRET", lines.join("\n")]]);
    expect(many.mask("x certificate line 7 y\n  certificate line 1999\nz")).toBe("x *** y\n***\nz");
  });

  test("shows nothing if there are more secrets than it can search for", () => {
    const many = secretsAmong(
      Array.from({ length: 2000 }, (_, index) => [`TOKEN_${index}`, `value ${index}`]),
    );
    expect(many.mask("value 1")).toBe("***");
    expect(many.mask("harmless")).toBe("***");
  });
});

describe("references to secrets are left to the shell", () => {
  const lookup = (name: string) => new Map(variables).get(name);
  const { has } = secretsAmong(variables);

  test.each([
    ["echo $PLAIN $API_TOKEN", "echo plain $API_TOKEN"],
    ["echo $SHORT_SECRET${PLAIN}s", "echo $SHORT_SECRET${PLAIN}s"],
    ['echo "${SHORT_SECRET:-none}" "${SHORT_SECRET#a}"', 'echo "${SHORT_SECRET:-none}" "${SHORT_SECRET#a}"'],
    // dash does not support this form, so it cannot be left to the shell.
    ["echo ${SHORT_SECRET/b/x}", "echo axc"],
  ])("%s", (line, expected) => {
    expect(expandRunLine(line, lookup, "\\", has)).toBe(expected);
  });

  test("also in the script of an exec form's shell, but not in its other words", () => {
    expect(
      expandExecWords(["sh", "-c", "echo $SHORT_SECRET $0", "$SHORT_SECRET"], lookup, "\\", has),
    ).toEqual(["sh", "-c", "echo $SHORT_SECRET $0", "abc"]);
  });
});
