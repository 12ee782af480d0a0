import { hasUndefinedOption, type ParsedValues, parseArguments } from "../command-line/arguments.ts";
import type { Command } from "../command-line/command.ts";
import { type ArgumentDefinitions, aliasesOf, readTokens } from "../command-line/definitions.ts";
import type { ForeignOptions } from "../command-line/foreign-options.ts";

/**
 * Parses a command's arguments. The options of other programs are looked up only for a command line that may have some.
 *
 * @param isDocker true if `BOUGH_DOCKER` or an option before the command's name asks for docker's meaning of command lines
 */
export async function readArguments(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  name: string,
  command: Command,
  isDocker: boolean,
): Promise<ParsedValues> {
  const { trailingCommand } = command;
  if (!hasDockerOption(raw, definitions) && !isDocker) {
    if (command.foreign === undefined || !hasUndefinedOption(raw, definitions, trailingCommand))
      return parseArguments(raw, definitions, name, { trailingCommand });
    return parseArguments(raw, definitions, name, { trailingCommand, foreign: await command.foreign() });
  }
  const foreign = await command.foreign?.();
  return parseArguments(raw, withDockerLetters(raw, definitions, foreign), name, {
    trailingCommand,
    foreign,
  });
}

/** True for `--docker`, unless `--no-docker` follows. */
function hasDockerOption(raw: readonly string[], definitions: ArgumentDefinitions): boolean {
  const last = readTokens(raw, definitions).findLast(
    (token) => token.kind === "option" && /^(no-)?docker$/.test(token.name),
  );
  return last?.kind === "option" && last.name === "docker" && last.value !== "false";
}

/** Returns the options with docker's letters: an option loses its own letter to the option that has it in docker. */
export function withDockerLetters(
  raw: readonly string[],
  definitions: ArgumentDefinitions,
  foreign: ForeignOptions | undefined,
): ArgumentDefinitions {
  const letters = new Set([
    ...Object.values(definitions).flatMap(({ dockerLetter = [] }) => dockerLetter),
    ...Object.values(foreign?.shapes ?? {}).flatMap(({ synonyms = [] }) =>
      synonyms.flatMap((name) => (name.length === 2 ? name.slice(1) : [])),
    ),
  ]);
  // `bough run -h` shows the help, even with docker's letters.
  if (raw.at(-1) === "-h") letters.delete("h");
  return Object.fromEntries(
    Object.entries(definitions).map(([name, definition]) => {
      if (definition.type === "positional") return [name, definition];
      const { dockerLetter } = definition;
      const kept = aliasesOf(definition).filter((alias) => !letters.has(alias));
      const own = dockerLetter !== undefined && letters.has(dockerLetter) ? [dockerLetter] : [];
      return [name, { ...definition, alias: [...own, ...kept] }];
    }),
  );
}
