/** The man pages of a release, formatted as man formats them: all by one groff, since man starts several programs a page. */
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

// Without the control sequences for bold and underlined text, and with each warning.
const options = ["-k", "-t", "-mandoc", "-Tutf8", "-ww", "-P-cbou", "-rLL=80n"];
const formatted = Bun.spawnSync(["groff", ...options, ...pages.map(({ name }) => name)], {
  ...{ cwd: directory, env: { PATH: process.env.PATH, LC_ALL: "C.UTF-8" } },
});
/** By the name at both ends of a page's first line, such as `BOUGH-BUILD(1)`. */
const texts = new Map(
  formatted.stdout
    .toString()
    .split(/^(?=[A-Z-]+\(\d\) +bough +[A-Z-]+\(\d\)$)/m)
    .map((text) => [text.split(" ")[0] ?? "", text]),
);

describe("man pages", () => {
  test("exist for bough, for every command and for every topic", () => {
    const names = pages.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["bough.1", "bough-build.1", "bough-images-import.1"]));
    expect(names.filter((name) => name.endsWith(".7"))).toEqual(
      Object.keys(topics).map((name) => `bough-${name}.7`),
    );
    expect(new Set(names).size).toBe(names.length);
  });

  test("cause no warning, and each has its name at its top", () => {
    expect(formatted.stderr.toString()).toBe("");
    const titles = pages.map(({ name }) => name.toUpperCase().replace(/\.(\d)$/, "($1)"));
    expect([...texts.keys()].sort()).toEqual(titles.sort());
  });

  test("can be read with man", () => {
    const { stdout, stderr } = Bun.spawnSync(["man", "--warnings", "-l", join(directory, "bough.1")], {
      env: { PATH: process.env.PATH, LC_ALL: "C.UTF-8", MANPAGER: "cat" },
    });
    expect({ text: stdout.toString(), warnings: stderr.toString() }).toEqual({
      text: expect.stringContaining("build container images from Dockerfiles"),
      warnings: "",
    });
  });

  test("have each option with its description, as the command's help has it", () => {
    const words = texts.get("BOUGH-BUILD(1)")?.replace(/[‐\s]+/g, "");
    for (const [name, { description = "" }] of Object.entries(argumentsOf(build.definition)))
      for (const part of [name === "context" ? "CONTEXT" : `--${name}`, description])
        expect(words).toContain(part.replace(/\s+/g, ""));
  });

  test.each(Object.entries(topics))("have the whole text of the topic %s", (name, { markdown }) => {
    const shown = texts
      .get(`BOUGH-${name.toUpperCase()}(7)`)
      ?.replace(/[^a-z0-9]/gi, "")
      .toLowerCase();
    const prose = markdown.replace(/^<!--.*?-->|^\|.*\|\n(?=\|-)/gms, "").replace(/\]\([^)]*\)/g, "]");
    const sentences = prose.split(/\n\n+|\|/).filter((text) => !/^#|^```|^-+$|^\s*$/.test(text));
    const missing = sentences.filter((text) => {
      // A link's target is inserted after its text.
      const [first = ""] = text.split("[");
      return shown?.includes(first.replace(/[^a-z0-9]/gi, "").toLowerCase()) !== true;
    });
    expect(missing).toEqual([]);
  });
});
