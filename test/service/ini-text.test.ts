/** Changes to INI files change the requested value and nothing else. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  hasIniValue,
  readProfiles,
  removeIniSection,
  removeIniValue,
  setIniValue,
} from "../../src/service/profiles/profile-text.ts";
import { runs } from "../support/random.ts";

describe("an existing value is changed in its place:", () => {
  test.each([
    ["plain", "[a]\nk = 1\n", "[a]\nk = 2\n"],
    ["the comment after it stays", "[a]\nk=1   ; why\n", "[a]\nk=2   ; why\n"],
    ["the comment after # stays", "[a]\nk = 1 # why\n", "[a]\nk = 2 # why\n"],
    ["an empty value", "[a]\nk =\nl = 3\n", "[a]\nk =2\nl = 3\n"],
    ["a value in quotes with a semicolon", '[a]\nk = "1;0" ; why\n', "[a]\nk = 2 ; why\n"],
    ["spelling and indentation of the key stay", "[a]\n  K\t=\t1\n", "[a]\n  K\t=\t2\n"],
    ["Windows line ends", "[a]\r\nk = 1\r\n", "[a]\r\nk = 2\r\n"],
    ["no line end at the end", "[a]\nk = 1", "[a]\nk = 2"],
    ["a byte order mark", "\ufeff[a]\nk = 1\n", "\ufeff[a]\nk = 2\n"],
    ["the last of two lines, which takes effect", "[a]\nk = 0\nk = 1\n", "[a]\nk = 0\nk = 2\n"],
    [
      "the line in the last of two sections, which takes effect",
      "[a]\nk = 0\n[b]\nk = 9\n[a]\nk = 1\n",
      "[a]\nk = 0\n[b]\nk = 9\n[a]\nk = 2\n",
    ],
    ["commented lines stay", "[a]\n;k = 0\n# k = 0\nk = 1\n", "[a]\n;k = 0\n# k = 0\nk = 2\n"],
  ])("%s", (_, before, after) => {
    expect(setIniValue(before, "a", "k", "2")).toBe(after);
  });
});

describe("a missing value gets a line", () => {
  test.each([
    ["in an empty file", "", "[a]\nk = 2\n"],
    [
      "after the section's last key",
      "[a]\nl = 1\n\n; of b\n[b]\nm = 1\n",
      "[a]\nl = 1\nk = 2\n\n; of b\n[b]\nm = 1\n",
    ],
    ["in a section without keys", "[a]\n[b]\n", "[a]\nk = 2\n[b]\n"],
    ["in a new section", "[b]\nk = 1\n", "[b]\nk = 1\n\n[a]\nk = 2\n"],
    ["after a last line without a line end", "[a]\nl = 1", "[a]\nl = 1\nk = 2\n"],
    ["with the file's line ends", "[a]\r\nl = 1\r\n", "[a]\r\nl = 1\r\nk = 2\r\n"],
  ])("%s", (_, before, after) => {
    expect(setIniValue(before, "a", "k", "2")).toBe(after);
  });

  test("a [DEFAULT] section is added before all sections, after the comment at the top", () => {
    expect(setIniValue("; mine\n\n[b]\nk = 1\n", "DEFAULT", "profile", "b")).toBe(
      "; mine\n\n[DEFAULT]\nprofile = b\n\n[b]\nk = 1\n",
    );
  });
});

describe("removing", () => {
  test.each([
    ["a section with its keys and comments", "[a]\nk = 1\n; about k\nl = 1\n\n[b]\nm = 1\n", "[b]\nm = 1\n"],
    [
      "a section, but not the comment above the next one",
      "[a]\nk = 1\n\n; about b\n[b]\nm = 1\n",
      "; about b\n[b]\nm = 1\n",
    ],
    ["the last section", "[b]\nm = 1\n\n[a]\nk = 1\n", "[b]\nm = 1\n\n"],
    ["an empty section", "[a]\n[b]\nm = 1\n", "[b]\nm = 1\n"],
    ["all sections of that name", "[a]\nk = 1\n[b]\nm = 1\n[a]\nk = 2\n", "[b]\nm = 1\n"],
    ["nothing if the name only begins alike", "[ab]\nk = 1\n", "[ab]\nk = 1\n"],
  ])("%s", (_, before, after) => {
    expect(removeIniSection(before, "a")).toBe(after);
  });

  test("a key with all its lines, in its section only", () => {
    expect(removeIniValue("[a]\nk = 1\nK = 2\nl = 1\n[b]\nk = 1\n", "a", "k")).toBe(
      "[a]\nl = 1\n[b]\nk = 1\n",
    );
    expect(hasIniValue("[a]\n;k = 1\n[b]\nk = 1\n", "a", "k")).toBe(false);
  });
});

test("in any file a changed value is read back, and at most one line differs", () => {
  const line = fc.oneof(
    fc.constantFrom(
      "[profile:a]",
      "[profile:b]",
      "[DEFAULT]",
      "[x.y]",
      "; note",
      "# note",
      "",
      "token = t",
      "url=u ; c",
    ),
    fc.string({ maxLength: 12 }).map((text) => text.replace(/[\r\n]/g, "")),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), fc.stringMatching(/^[\w./:-]{1,10}$/), (lines, value) => {
      const before = lines.join("\n");
      const after = setIniValue(before, "profile:a", "token", value);
      const profile = readProfiles([{ path: "auth.ini", text: after }]).byName.get("a");
      expect(profile?.token?.text()).toBe(value);
      const kept = before.split("\n").filter((text) => text !== "");
      const now = after.split("\n");
      expect(kept.filter((text) => !now.includes(text)).length).toBeLessThanOrEqual(1);
    }),
    { numRuns: runs(500) },
  );
});
