/**
 * Golden cases of `bough build --explain`: test/cases/explain/<change>/ has `builds.json`, the builds of one context
 * with the changes before each, and `expected.txt`, the lines about the cache that each build prints.
 * `UPDATE_GOLDEN=1 ./scripts/test` writes it.
 */
import { describe, test } from "bun:test";
import { chmodSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startFakeService } from "../fake-service/fake-service.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { expectGolden } from "../support/golden.ts";

interface Build {
  /** Files that are written first; a Dockerfile is one of them. */
  files?: Record<string, string>;
  /** Octal modes by path. */
  modes?: Record<string, string>;
  removed?: string[];
  /** The service gets another image of the tag `base:1`. */
  newBase?: true;
  /** A session or branch command that is run first. */
  before?: string[];
  /** The outcomes of the RUNs in order; later RUNs succeed. */
  runs?: RunOutcome[];
  options?: string[];
}

const cases = join(import.meta.dir, "../cases/explain");

describe("bough build --explain", () => {
  test.each(readdirSync(cases).sort())("%s", async (name) => {
    const directory = join(cases, name);
    const actual = await play(JSON.parse(readFileSync(join(directory, "builds.json"), "utf8")));
    expectGolden(join(directory, "expected.txt"), actual);
  });
});

async function play(builds: readonly Build[]): Promise<string> {
  let outcomes: RunOutcome[] = [];
  const service = await startFakeService({ run: () => outcomes.shift() });
  service.state.addImage("base:1");
  const context = temporaryDirectory();
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const shown: string[] = [];
  const bough = (words: readonly string[]) =>
    runBough(["--url", service.url, "--token", "t", ...words], { workingDirectory: context, environment });
  try {
    for (const { files = {}, modes = {}, removed = [], newBase, before, runs, options = [] } of builds) {
      writeFiles(context, files);
      for (const [path, mode] of Object.entries(modes))
        chmodSync(join(context, path), Number.parseInt(mode, 8));
      for (const path of removed) rmSync(join(context, path), { recursive: true });
      if (newBase === true) service.state.addImage("base:1");
      if (before !== undefined) shown.push(`$ bough ${before.join(" ")}`, (await bough(before)).stderr);
      outcomes = [...(runs ?? [])];
      const words = ["build", ".", "--explain", ...options];
      const { stderr, exitCode } = await bough(words);
      const lines = stderr.split("\n").filter((line) => /^\[INFO\] (not )?cached/.test(line));
      shown.push(`$ bough ${words.join(" ")}`, ...lines, `exit code ${exitCode}`, "");
    }
    return normalise(shown.join("\n"));
  } finally {
    await service.close();
  }
}

function normalise(text: string): string {
  return text
    .replace(/a0000000-0000-4000-8000-0*(\d+)/g, (_, number) => `image-${number}`)
    .replace(/layer:[0-9a-f]{12}/g, "layer:HASH")
    .trimEnd()
    .concat("\n");
}
