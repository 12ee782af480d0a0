/** Runs every command block of README.md and of the manual's topics; each reader of a topic has built README's example. */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { topics } from "../../src/cli/help/topics.ts";
import { commands } from "../../src/cli/program/commands.ts";
import { defaultExcludes } from "../../src/context/patterns/ignore.ts";
import { readBlocks } from "./blocks.ts";
import { testDocument } from "./document.ts";

const root = join(import.meta.dir, "../..");
const folder = "src/cli/help/topics";
const paths = Object.keys(topics).map((name) => `${folder}/${name}.md`);

testDocument("README.md");
for (const path of paths) testDocument(path, { before: "bough build -q --docker . --tag greeter:dev" });

describe("the manual", () => {
  const documents = ["README.md", ...paths].map((path) => ({
    path,
    text: readFileSync(join(root, path), "utf8"),
  }));

  test("has each file of its folder as a topic, and no topic has the name of a command", () => {
    expect(readdirSync(join(root, folder)).sort()).toEqual(
      Object.keys(topics)
        .map((name) => `${name}.md`)
        .sort(),
    );
    expect(Object.keys(topics).filter((name) => Object.hasOwn(commands, name))).toEqual([]);
  });

  test("README.md has at most 200 lines, and links to each topic", () => {
    const [readme] = documents;
    expect(readme?.text.split("\n").length).toBeLessThanOrEqual(201);
    for (const [name, { summary }] of Object.entries(topics))
      expect(readme?.text).toContain(`- [${name}](${folder}/${name}.md): ${summary}\n`);
  });

  test.each(documents)("$path links to files that exist and to their headings", ({ path, text }) => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)];
    for (const [link, file = "", anchor] of links) {
      const target = file === "" ? path : join(dirname(path), file);
      expect({ link, exists: existsSync(join(root, target)) }).toEqual({ link, exists: true });
      if (anchor === undefined) continue;
      const headings = [...readFileSync(join(root, target), "utf8").matchAll(/^#+ (.*)$/gm)];
      expect(headings.map(([, title = ""]) => anchorOf(title))).toContain(anchor);
    }
  });

  test("has all default excludes", () => {
    const [, section = ""] = topics.dockerfile?.markdown.split("\n## Default excludes\n") ?? [];
    const [, list = ""] = section.split("\n```\n");
    const words = list.split(/\s+/).filter((word) => word !== "");
    expect(words.sort()).toEqual([...defaultExcludes].sort());
  });

  test("gives a reason for each block that is not run, and these are at most half of all", () => {
    const blocks = documents.flatMap(({ text }) => readBlocks(text));
    const notRun = blocks.filter(({ notRunBecause }) => notRunBecause !== undefined);
    for (const { notRunBecause } of notRun) expect(notRunBecause?.length).toBeGreaterThan(10);
    expect(notRun.length).toBeLessThanOrEqual(blocks.length / 2);
  });
});

function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");
}
