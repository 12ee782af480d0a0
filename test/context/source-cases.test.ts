/**
 * Runs the golden files in `test/cases/sources`. Each has a section `context` (see make-tree.ts), optionally
 * `.dockerignore`, and then a section for each COPY with its entries: kind, mode, the path below the
 * destination, and the path in the context. `UPDATE_GOLDEN=1` writes the current results.
 */
import { afterEach, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openBuildContext } from "../../src/context/build-context.ts";
import { localFileSystem } from "../../src/context/file-system/file-system.ts";
import { readIgnoreRules } from "../../src/context/patterns/ignore.ts";
import type { ContextEntry } from "../../src/context/sources/entry.ts";
import { resolveSources } from "../../src/context/sources/sources.ts";
import { BoughError } from "../../src/errors.ts";
import { expectGolden } from "../support/golden.ts";
import { formatSections, readCases, type Section, writePath } from "./case-file.ts";
import { makeTree, removeTrees } from "./make-tree.ts";

afterEach(removeTrees);

for (const { name, path, sections } of readCases("sources")) {
  test(`sources: ${name}`, async () => {
    const root = makeTree(sections.find(({ title }) => title === "context")?.body ?? "");
    const rules = sections.find(({ title }) => title === ".dockerignore");
    if (rules !== undefined) writeFileSync(join(root, ".dockerignore"), rules.body);
    const actual: Section[] = [];
    for (const section of sections)
      actual.push(
        section.title.startsWith("COPY ") ? { ...section, body: await copy(section.title, root) } : section,
      );
    expectGolden(path, formatSections(actual));
  });
}

async function copy(instruction: string, root: string): Promise<string> {
  const [, flags = "", words = ""] = /^COPY((?: --\S+)*) (.*)$/.exec(instruction) ?? [];
  const has = (flag: string) => flags.split(" ").includes(flag);
  try {
    const context = await openBuildContext(root, "/");
    const { matches, warnings, excluded } = await resolveSources({
      context,
      files: localFileSystem,
      ignore: readIgnoreRules({
        contextPath: root,
        dockerfilePath: undefined,
        defaultExcludes: !has("--no-default-excludes"),
      }),
      sources: words.startsWith('["') ? (JSON.parse(words) as string[]) : words.split(" "),
      exclude: [...flags.matchAll(/--exclude=(\S+)/g)].map(([, pattern = ""]) => pattern),
      parents: has("--parents"),
    });
    const lines = [
      ...matches.flatMap(({ source, entries }) => [`${writePath(source)}:`, ...[...entries].map(describe)]),
      ...warnings.map(({ message }) => `warning: ${message}`),
      ...excluded.map((path) => `excluded: ${path}`),
    ];
    return `${lines.join("\n") || "nothing"}\n`.replaceAll(`${root}/`, "");
  } catch (error) {
    if (!(error instanceof BoughError)) throw error;
    return `error: ${error.message}\n${error.hint === undefined ? "" : `hint: ${error.hint}\n`}`;
  }
}

function describe(entry: ContextEntry): string {
  const mode = entry.type === "symlink" ? "" : entry.mode.toString(8).padStart(4, "0");
  const target = entry.type === "symlink" ? ` -> ${entry.target}` : "";
  const to = writePath(entry.relativePath || ".");
  const from = writePath(entry.contextPath || ".");
  return `  ${entry.type.padEnd(9)} ${mode.padEnd(4)} ${to}${target}${to === from ? "" : `  from ${from}`}`;
}
