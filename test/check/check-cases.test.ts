/**
 * Golden cases of `bough build --check`: test/cases/check/<case>/ is a build context with
 * - `Dockerfile`;
 * - `case.json` (optional): options, more files, and whether the output of `-f json` is part of the golden file;
 * - `expected.txt`: the expected output. `UPDATE_GOLDEN=1 ./scripts/test` writes it.
 */
import { describe, expect, test } from "bun:test";
import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { describeReport } from "../../src/check/report.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { expectGolden } from "../support/golden.ts";

interface Case {
  /** The arguments after `bough build --check`. */
  options?: string[];
  /** Files that a repository can't hold, such as links and empty directories. */
  files?: Record<string, FileSpec>;
  /** The name of a socket of an SSH agent. */
  socket?: string;
  json?: boolean;
}

const cases = join(import.meta.dir, "../cases/check");

describe("bough build --check", () => {
  test.each(readdirSync(cases).sort())("%s", async (name) => {
    const directory = join(cases, name);
    const actual = await play(directory);
    expectGolden(join(directory, "expected.txt"), actual);
  });
});

async function play(directory: string): Promise<string> {
  const description = join(directory, "case.json");
  const given: Case = existsSync(description) ? JSON.parse(readFileSync(description, "utf8")) : {};
  const context = temporaryDirectory();
  const isPartOfContext = (path: string) => !/\/(case\.json|expected\.txt)$/.test(path);
  cpSync(directory, context, { recursive: true, filter: isPartOfContext });
  writeFiles(context, given.files ?? {});
  using sockets = new DisposableStack();
  if (given.socket !== undefined) listen(join(context, given.socket), sockets);

  const words = ["build", "--check", ...(given.options ?? [])];
  const text = await runBough(words, { workingDirectory: context });
  const json = await runBough([...words, "--format", "json"], { workingDirectory: context });
  // The report is always one object, and nothing goes to standard error.
  const report = JSON.parse(json.stdout);
  expect({ exitCode: json.exitCode, stderr: text.stderr + json.stderr }).toEqual({
    exitCode: text.exitCode,
    stderr: "",
  });
  expect(text.exitCode).toBe(report.errors.length > 0 ? 2 : 0);
  const shown = [`$ bough ${words.join(" ")}`, text.stdout, `exit code ${text.exitCode}`];
  if (given.json === true) shown.push("", `$ bough ${words.join(" ")} -f json`, layOut(report));
  return `${shown.join("\n").replaceAll(context, "CONTEXT")}\n`;
}

function listen(path: string, holder: DisposableStack): void {
  const server = Bun.listen({ unix: path, socket: { data() {} } });
  holder.defer(() => server.stop());
}

/** Returns the report as JSON with one line for each item of a list. */
function layOut(report: ReturnType<typeof describeReport>): string {
  const lists = Object.entries(report).map(([name, items]) =>
    items.length === 0
      ? `"${name}": []`
      : `"${name}": [\n${items.map((item) => `  ${JSON.stringify(item)}`).join(",\n")}\n]`,
  );
  return `{\n${lists.join(",\n")}\n}`;
}
