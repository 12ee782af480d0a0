/** The man pages of a release, read by man. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { manPages } from "../../scripts/manual/man-pages.ts";
import { build } from "../../src/cli/builds/build.ts";
import { argumentsOf } from "../../src/cli/command-line/help.ts";
import { topics } from "../../src/cli/help/topics.ts";
import { temporaryDirectory } from "../support/bough.ts";

const pages = await manPages();
const directory = temporaryDirectory();
for (const { name, text } of pages) writeFileSync(join(directory, name), text);

interface Formatted {
  text: string;
  /** What man reports. */
  warnings: string;
}

const formatted = new Map<string, Formatted>();

function man(name: string): Formatted {
  const known = formatted.get(name) ?? format(name);
  formatted.set(name, known);
  return known;
}

function format(name: string): Formatted {
  const { stdout, stderr } = Bun.spawnSync(
    ["man", "--warnings", "-E", "UTF-8", "-l", join(directory, name)],
    { env: { PATH: process.env.PATH, LC_ALL: "C.UTF-8", MANWIDTH: "80", MANROFFSEQ: "", MANPAGER: "cat" } },
  );
  return { text: stdout.toString(), warnings: stderr.toString() };
}

describe("man pages", () => {
  test("exist for bough, for every command and for every topic", () => {
    const names = pages.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["bough.1", "bough-build.1", "bough-images-import.1"]));
    expect(names.filter((name) => name.endsWith(".7"))).toEqual(
      Object.keys(topics).map((name) => `bough-${name}.7`),
    );
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(pages)("$name causes no warning of man", ({ name }) => {
    expect(man(name).warnings).toBe("");
  });

  test("have each option with its description, as the command's help has it", () => {
    const words = man("bough-build.1").text.replace(/[‐\s]+/g, "");
    for (const [name, { description = "" }] of Object.entries(argumentsOf(build.definition)))
      for (const part of [name === "context" ? "CONTEXT" : `--${name}`, description])
        expect(words).toContain(part.replace(/\s+/g, ""));
  });

  test.each(Object.entries(topics))("have the whole text of the topic %s", (name, { markdown }) => {
    const shown = man(`bough-${name}.7`)
      .text.replace(/[^a-z0-9]/gi, "")
      .toLowerCase();
    const prose = markdown.replace(/^<!--.*?-->|^\|.*\|\n(?=\|-)/gms, "").replace(/\]\([^)]*\)/g, "]");
    const sentences = prose.split(/\n\n+|\|/).filter((text) => !/^#|^```|^-+$|^\s*$/.test(text));
    const missing = sentences.filter((text) => {
      // A link's target is inserted after its text.
      const [first = ""] = text.split("[");
      return !shown.includes(first.replace(/[^a-z0-9]/gi, "").toLowerCase());
    });
    expect(missing).toEqual([]);
  });
});
