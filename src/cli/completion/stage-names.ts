import { readFileSync, statSync } from "node:fs";
import { parseDockerfile } from "../../dockerfile/parse.ts";
import { locateInputs } from "../builds/inputs.ts";
import type { Invocation } from "../command-line/command.ts";
import { maxDockerfileBytes } from "../contexts/dockerfile-file.ts";

/** Returns the names of the stages in the Dockerfile of a `bough build` command line. In a list they follow the last comma. */
export function findStageNames(
  current: string,
  { values, runtime }: Pick<Invocation, "runtime" | "values">,
): string[] {
  const [context = "."] = values.positionals;
  const { dockerfile } = locateInputs({
    context,
    options: { dockerfile: values.text("dockerfile") },
    runtime,
  });
  if (dockerfile === undefined) return [];
  const { absolutePath, path } = dockerfile;
  const stats = statSync(absolutePath);
  // Standard input belongs to the shell, and a pipe can be read only once.
  if (!stats.isFile() || stats.size > maxDockerfileBytes) return [];
  const { stages } = parseDockerfile(readFileSync(absolutePath, "utf8"), path);
  const list = current.slice(0, current.lastIndexOf(",") + 1);
  return [...new Set(stages.flatMap(({ name }) => name ?? []))].map((name) => `${list}${name}`);
}
