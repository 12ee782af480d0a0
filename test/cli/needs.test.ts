/** Which command lines need the engine: for an ordinary user they start again in a user namespace, before anything is read. */
import { expect, test } from "bun:test";
import type { CommandTable } from "../../src/cli/command-line/command.ts";
import { commands } from "../../src/cli/program/commands.ts";
import { BoughError } from "../../src/errors.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";

/** Those that only have to do with files, profiles, sessions or registries. */
const withoutEngine = [
  "agent",
  "auth",
  "auth list",
  "auth remove",
  "auth save",
  "auth switch",
  "completion",
  "doctor",
  "env",
  "history diff",
  "history logs",
  "history ls",
  "history rm",
  "history show",
  "index create",
  "index inspect",
  "licenses",
  "plugin install",
  "plugin remove",
  "plugin status",
  "release-key",
  "session branch",
  "session checkout",
  "session delete",
  "session list",
  "session rollback",
  "session show",
  "skill install",
  "skill list",
  "skill remove",
  "skill upgrade",
  "verify",
];

function pathsOf(table: CommandTable, before: readonly string[] = []): string[][] {
  return Object.entries(table).flatMap(([name, entry]) =>
    "load" in entry ? [[...before, name]] : pathsOf(entry.commands, [...before, name]),
  );
}

/** Returns true if the command line starts again before it has read standard input. */
async function enters(words: readonly string[], { hasService = false } = {}): Promise<boolean> {
  let hasRead = false;
  async function* input() {
    hasRead = true;
    yield new TextEncoder().encode("FROM scratch\n");
  }
  const { stderr } = await runBough(words, {
    workingDirectory: temporaryDirectory(),
    environment: hasService ? { CONTREE_URL: "http://127.0.0.1:1", CONTREE_TOKEN: "token" } : {},
    stdin: input(),
    onEnter: () => {
      throw new BoughError("started again");
    },
  });
  return stderr.includes("started again") && !hasRead;
}

test.each(pathsOf(commands).map((words) => words.join(" ")))("%s", async (name) => {
  const words = name.split(" ");
  expect(await enters([...words, ...argumentsOf(name)])).toBe(!withoutEngine.includes(name));
});

/** What the command refuses to start without. */
function argumentsOf(name: string): string[] {
  const takesNone = /^(bake|engine|serve|mcp|doctor|licenses|agent|release-key|ps|plugin|skill|auth$)/;
  if (takesNone.test(name)) return [];
  return /^(tag|cp|images export|session branch)$/.test(name) ? ["a", "b"] : ["a"];
}

test.each<[line: string, needs: boolean]>([
  ["build", true],
  ["build -", true],
  ["build - --check", false],
  ["build --docker --call outline -", false],
  ["bake -f -", true],
  ["bake -f ./none --print", false],
  ["bake -f ./none --list targets", false],
  ["use", false],
  ["run -d --env-file - app:1", true],
  ["run -h", false],
])("%s", async (line, needs) => {
  expect(await enters(line.split(" "))).toBe(needs);
});

test("with a service only what maintains the engine needs it", async () => {
  expect(await enters(["images"], { hasService: true })).toBe(false);
  expect(await enters(["--local", "build", "-"], { hasService: true })).toBe(true);
  expect(await enters(["serve"], { hasService: true })).toBe(true);
});
