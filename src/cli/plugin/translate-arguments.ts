/** Translates the arguments of buildx's commands into those of bough's. */

import { CommandLineError, usageError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import type { Command } from "../command-line/command.ts";
import {
  type ArgumentDefinition,
  type ArgumentDefinitions,
  readTokens,
} from "../command-line/definitions.ts";
import type { Token } from "../command-line/tokens.ts";
import { withDockerLetters } from "../dispatch/read-arguments.ts";
import { definitionsOf } from "../dispatch/run-command.ts";
import { commonOptions } from "./subcommand.ts";

interface TranslatedArguments {
  builder: string | undefined;
  remaining: string[];
  warnings: string[];
}

type Option = Extract<Token, { kind: "option" }>;

/** Options whose empty value buildx refuses, by command. An empty value of any other option counts as absent. */
const neverEmptyOptions: Readonly<Record<string, readonly string[]>> = {
  build: ["attest", "build-arg", "label", "platform", "tag"],
  bake: ["allow", "file", "set"],
};

/** Options whose values are parsed with the command line. */
const validatedOptions = ["shm-size", "ulimit"];

/** Options whose value 0 is the default. */
const sizeOptions = ["memory", "shm-size"];

/** Options of docker's builder before BuildKit, with buildx's warnings about them. */
const deprecatedOptions: Readonly<Record<string, string>> = {
  "--isolation": "isolation flag is deprecated with BuildKit.",
  "--security-opt":
    'security-opt flag is deprecated. "RUN --security=insecure" should be used with BuildKit.',
  "--squash":
    "experimental flag squash is removed with BuildKit. You should squash inside build using a multi-stage Dockerfile for efficiency.",
};

/**
 * Removes options that bough's commands lack (`--builder`, as bough's builders are profiles, `-D`, and what buildx itself ignores), empty
 * values, and all but the last of an option with one value. docker takes the last one: `docker compose build -q` adds a second `--progress`.
 */
export async function translateArguments(
  given: readonly string[],
  command: Command,
): Promise<TranslatedArguments> {
  const foreign = await command.foreign?.();
  const own = withDockerLetters(given, definitionsOf(command), foreign);
  const definitions: ArgumentDefinitions = { ...withValues(own), ...commonOptions };
  const words = withLongNames(given, readTokens(given, definitions, foreign?.shapes));
  const warnings = new Set<string>();
  const removed = new Set<number>();
  const latest = new Map<string, number[]>();
  // `--platform` has one value in bough, but in docker a repeated one adds to the earlier ones.
  const platforms: string[] = [];
  let builder: string | undefined;
  const remove = (places: readonly number[] = []) => {
    for (const place of places) removed.add(place);
  };
  const readOption = (token: Option) => {
    const { name, rawName, value } = token;
    const places = positionsOf(token);
    const shape = own[name] ?? definitions[name] ?? foreign?.shapes[name];
    const isFlag = shape?.type === "boolean" || isCheck(name);
    if (value === "" && isFlag)
      throw new CommandLineError(`${rawName} takes no value but true or false, not ""`);
    const former = deprecatedOptions[rawName];
    if (former !== undefined) warnings.add(former);
    if (name === "builder") builder = value || undefined;
    if (former !== undefined || name === "builder" || isDebug(token)) {
      remove(places);
      return;
    }
    if (name === "platform" && value) platforms.push(value);
    const isLeftOut = isUnset(token, isFlag, command);
    if (isLeftOut) remove(places);
    if (!takesOneValue(own[name])) return;
    remove(latest.get(name));
    if (!isLeftOut) latest.set(name, places);
  };
  for (const token of readTokens(words, definitions, foreign?.shapes))
    if (token.kind === "option") readOption(token);
  if (platforms.length > 1) remove(latest.get("platform"));
  const joined = platforms.length > 1 ? [`--platform=${platforms.join(",")}`] : [];
  return {
    builder,
    remaining: [...joined, ...words.filter((_, index) => !removed.has(index))],
    warnings: [...warnings],
  };
}

/** Makes all values mandatory: in docker, an option with a value always takes the next word, as in `--provenance ""`. */
function withValues(definitions: ArgumentDefinitions): ArgumentDefinitions {
  const entries = Object.entries(definitions).map(([name, definition]) => {
    const { optional: _, ...others } = definition;
    return [name, isCheck(name) ? definition : others] as const;
  });
  return Object.fromEntries(entries) as ArgumentDefinitions;
}

/** Returns the positions of an option and of its value among the words. */
function positionsOf({ index, value, inlineValue }: Option): number[] {
  return value !== undefined && inlineValue === false ? [index, index + 1] : [index];
}

function takesOneValue(definition: ArgumentDefinition | undefined): boolean {
  return definition !== undefined && definition.type !== "boolean" && definition.multiple !== true;
}

/** True for `--check`, a flag in buildx that takes a level in bough. */
function isCheck(name: string): boolean {
  return name === "check";
}

/** Writes `-t=x` as `--tag=x`, since Go's command lines allow `=` after the letter of an option. */
function withLongNames(words: readonly string[], tokens: readonly Token[]): string[] {
  const written = new Map<number, string>();
  for (const token of tokens) {
    if (token.kind !== "option" || written.has(token.index)) continue;
    const [, value] = /^-[A-Za-z]=(.+)$/s.exec(words[token.index] ?? "") ?? [];
    const name = token.name.startsWith("-") ? token.name : `--${token.name}`;
    if (value !== undefined) written.set(token.index, `${name}=${value}`);
  }
  return words.map((word, index) => written.get(index) ?? word);
}

function isDebug({ rawName, value }: Option): boolean {
  const isNamed = rawName === "-D" || rawName === "--debug";
  return isNamed && (value === undefined || parseGoBoolean(value) !== undefined);
}

/** True for a value that counts as absent. Throws for an empty value that buildx refuses. */
function isUnset({ name, rawName, value }: Option, isFlag: boolean, command: Command): boolean {
  if (isFlag || value === undefined) return false;
  if (sizeOptions.includes(name) && /^0+(\.0*)?([bkmgtp]?(i?b)?)$/i.test(value)) return true;
  if (value !== "" || validatedOptions.includes(name)) return false;
  const { name: commandName = "" } = command.definition.meta as { name?: string };
  if (neverEmptyOptions[commandName]?.includes(name) !== true) return true;
  throw usageError(`${rawName} is empty`, "Leave it out, or give it a value.");
}
