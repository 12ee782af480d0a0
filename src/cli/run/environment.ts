import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { secretsAmong } from "../../dockerfile/secrets.ts";
import { BoughError, usageError } from "../../errors.ts";
import { reasonOf } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";

/** Parses `KEY=VALUE`. `KEY` alone takes the value of this process's variable, as in `docker run -e`. */
export function readEnvironment(
  given: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const separator = text.indexOf("=");
      if (separator > 0) return [text.slice(0, separator), text.slice(separator + 1)];
      const value = separator < 0 ? environment[text] : undefined;
      if (value !== undefined) return [text, value];
      throw separator === 0
        ? usageError(`--env takes KEY=VALUE, not ${JSON.stringify(text)}`, "The name is missing.")
        : usageError(
            `--env ${text}: the variable is not set`,
            `Write --env ${text}=VALUE, or export it first.`,
          );
    }),
  );
}

/**
 * Reads `--env-file` as docker does, one variable a line. `KEY` alone takes the value of this process's variable, or is left out
 * if there is none. Empty lines and lines that begin with `#` are skipped. Quotes are part of a value.
 */
export function readEnvironmentFiles(
  paths: readonly string[],
  { environment, workingDirectory }: Pick<Runtime, "environment" | "workingDirectory">,
): Record<string, string> {
  return Object.fromEntries(
    paths.flatMap((path) =>
      readLines(path, workingDirectory).flatMap((line, index): [string, string][] => {
        const text = line.trimStart();
        if (text === "" || text.startsWith("#")) return [];
        const [, name = "", value = environment[text]] = /^([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
        if (name !== "" && !/\s/.test(name)) return value === undefined ? [] : [[name, value]];
        throw usageError(
          `--env-file ${path}: line ${index + 1} does not begin with a variable name`,
          "Each line is KEY=VALUE or KEY, without spaces in KEY.",
        );
      }),
    ),
  );
}

function readLines(path: string, workingDirectory: string): string[] {
  try {
    const text = readFileSync(resolve(workingDirectory, path), "utf8");
    return text.replace(/^\uFEFF/, "").split(/\r?\n/);
  } catch (error) {
    throw new BoughError(`cannot read --env-file ${path}: ${reasonOf(error)}`, {
      kind: "usage",
      cause: error,
    });
  }
}

/**
 * Rewrites a command line without the secrets of its `--env KEY=VALUE`, because all users of the machine can see it while it
 * runs: the new one has `--env KEY`, and the value in its environment. `given` has this command line's `--env` options.
 * `commandLength` is the number of words at its end that are the command.
 */
export function secretsByEnvironment(
  given: readonly string[],
  env: Readonly<Record<string, string>>,
  commandLength: number,
): { environment: Record<string, string>; rewrite: (words: readonly string[]) => string[] } {
  const secrets = secretsAmong(Object.entries(env));
  const names = new Map(
    given.flatMap((text): [string, string][] => {
      const name = text.slice(0, Math.max(0, text.indexOf("=")));
      return name !== "" && secrets.has(name) ? [[text, name]] : [];
    }),
  );
  return {
    environment: Object.fromEntries([...names.values()].map((name) => [name, env[name] ?? ""])),
    rewrite(words) {
      const own = words.slice(0, words.length - commandLength);
      // The text follows its option, or is in one word with it: `--env=KEY=VALUE`, `-eKEY=VALUE`.
      const rewritten = own.map((word) => {
        const text = [...names.keys()].find((text) => word.endsWith(text));
        return text === undefined ? word : `${word.slice(0, -text.length)}${names.get(text)}`;
      });
      return [...rewritten, ...words.slice(own.length)];
    },
  };
}
