/** Changes to INI files: what is asked for, and nothing else. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  hasIniValue,
  removeIniSection,
  removeIniValue,
  setIniValue,
} from "../../src/service/profiles/ini-text.ts";
import { readProfiles } from "../../src/service/profiles/profile-text.ts";
import { runs } from "../support/random.ts";

describe("a value that is there is changed in its place", () => {
  test.each([
    ["plain", "[a]\nk = 1\n", "[a]\nk = 2\n"],
    ["a comment stays behind it", "[a]\nk=1   ; why\n", "[a]\nk=2   ; why\n"],
    ["another kind of comment", "[a]\nk = 1 # why\n", "[a]\nk = 2 # why\n"],
    ["an empty value", "[a]\nk =\nl = 3\n", "[a]\nk =2\nl = 3\n"],
    ["in quotes, with a semicolon", '[a]\nk = "1;0" ; why\n', "[a]\nk = 2 ; why\n"],
    ["its own spelling and indentation stay", "[a]\n  K\t=\t1\n", "[a]\n  K\t=\t2\n"],
    ["Windows line ends", "[a]\r\nk = 1\r\n", "[a]\r\nk = 2\r\n"],
    ["no line end at the end", "[a]\nk = 1", "[a]\nk = 2"],
    ["a byte order mark", "\ufeff[a]\nk = 1\n", "\ufeff[a]\nk = 2\n"],
    ["of two lines the one that counts", "[a]\nk = 0\nk = 1\n", "[a]\nk = 0\nk = 2\n"],
    [
      "of two sections the one that counts",
      "[a]\nk = 0\n[b]\nk = 9\n[a]\nk = 1\n",
      "[a]\nk = 0\n[b]\nk = 9\n[a]\nk = 2\n",
    ],
    ["not the one that is a comment", "[a]\n;k = 0\n# k = 0\nk = 1\n", "[a]\n;k = 0\n# k = 0\nk = 2\n"],
  ])("%s", (_, before, after) => {
    expect(setIniValue(before, "a", "k", "2")).toBe(after);
  });
});

describe("a value that is not there gets a line", () => {
  test.each([
    ["in an empty file", "", "[a]\nk = 2\n"],
    [
      "after the section's last key",
      "[a]\nl = 1\n\n; of b\n[b]\nm = 1\n",
      "[a]\nl = 1\nk = 2\n\n; of b\n[b]\nm = 1\n",
    ],
    ["in a section without keys", "[a]\n[b]\n", "[a]\nk = 2\n[b]\n"],
    ["in a section of its own", "[b]\nk = 1\n", "[b]\nk = 1\n\n[a]\nk = 2\n"],
    ["after a line without an end", "[a]\nl = 1", "[a]\nl = 1\nk = 2\n"],
    ["with the file's line ends", "[a]\r\nl = 1\r\n", "[a]\r\nl = 1\r\nk = 2\r\n"],
  ])("%s", (_, before, after) => {
    expect(setIniValue(before, "a", "k", "2")).toBe(after);
  });

  test("defaults stand before all sections, and after what the file begins with", () => {
    expect(setIniValue("; mine\n\n[b]\nk = 1\n", "DEFAULT", "profile", "b")).toBe(
      "; mine\n\n[DEFAULT]\nprofile = b\n\n[b]\nk = 1\n",
    );
  });
});

describe("removing", () => {
  test.each([
    ["a section with what is in it", "[a]\nk = 1\n; about k\nl = 1\n\n[b]\nm = 1\n", "[b]\nm = 1\n"],
    [
      "and not the comment on the next one",
      "[a]\nk = 1\n\n; about b\n[b]\nm = 1\n",
      "; about b\n[b]\nm = 1\n",
    ],
    ["the last one", "[b]\nm = 1\n\n[a]\nk = 1\n", "[b]\nm = 1\n\n"],
    ["an empty one", "[a]\n[b]\nm = 1\n", "[b]\nm = 1\n"],
    ["each of that name", "[a]\nk = 1\n[b]\nm = 1\n[a]\nk = 2\n", "[b]\nm = 1\n"],
    ["none", "[ab]\nk = 1\n", "[ab]\nk = 1\n"],
  ])("%s", (_, before, after) => {
    expect(removeIniSection(before, "a")).toBe(after);
  });

  test("a key takes every line for it, in its section alone", () => {
    expect(removeIniValue("[a]\nk = 1\nK = 2\nl = 1\n[b]\nk = 1\n", "a", "k")).toBe(
      "[a]\nl = 1\n[b]\nk = 1\n",
    );
    expect(hasIniValue("[a]\n;k = 1\n[b]\nk = 1\n", "a", "k")).toBe(false);
  });
});

test("whatever a file looks like: the value is read back, and at most one line is another", () => {
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
      expect(profile?.token).toBe(value);
      const kept = before.split("\n").filter((text) => text !== "");
      const now = after.split("\n");
      expect(kept.filter((text) => !now.includes(text)).length).toBeLessThanOrEqual(1);
    }),
    { numRuns: runs(500) },
  );
});
