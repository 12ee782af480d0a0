/** The words of buildx's commands: what of them is left to bough's. */

import { CommandLineError, usageError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";

import type { Command } from "../command-line/command.ts";
import {
  type ArgumentDefinition,
  type ArgumentDefinitions,
  readTokens,
} from "../command-line/definitions.ts";
import type { Token } from "../command-line/tokens.ts";
import { asInDocker } from "../dispatch/read-arguments.ts";
import { definitionsOf } from "../dispatch/run-command.ts";

/** Options of buildx that each of its commands has. */
export const commonOptions: ArgumentDefinitions = {
  builder: { type: "string" },
  debug: { type: "boolean", alias: "D" },
};

interface BuildxWords {
  builder: string | undefined;
  others: string[];
  warnings: string[];
}

type Option = Extract<Token, { kind: "option" }>;

/** Options whose empty value buildx refuses, by command. Each other one without a value is as if it were not given. */
const neverEmpty: Readonly<Record<string, readonly string[]>> = {
  build: ["attest", "build-arg", "label", "platform", "tag"],
  bake: ["allow", "file", "set"],
};

/** Those that are parsed with the command line. */
const parsed = ["shm-size", "ulimit"];

/** Sizes whose value 0 is the default. */
const sizes = ["memory", "shm-size"];

/** Options of the builder before BuildKit, and what buildx says of them. */
const formerOptions: Readonly<Record<string, string>> = {
  "--isolation": "isolation flag is deprecated with BuildKit.",
  "--security-opt":
    'security-opt flag is deprecated. "RUN --security=insecure" should be used with BuildKit.',
  "--squash":
    "experimental flag squash is removed with BuildKit. You should squash inside build using a multi-stage Dockerfile for efficiency.",
};

/**
 * Takes out what bough's commands do not have: `--builder`, since bough's builders are profiles, `-D`, and what buildx itself ignores; what
 * is empty; and all but the last of an option with one value, since docker takes the last: `docker compose build -q` adds a second
 * `--progress`.
 */
export async function readWords(given: readonly string[], command: Command): Promise<BuildxWords> {
  const foreign = await command.foreign?.();
  const own = asInDocker(given, definitionsOf(command), foreign);
  const definitions: ArgumentDefinitions = { ...withValues(own), ...commonOptions };
  const words = withLongNames(given, readTokens(given, definitions, foreign?.shapes));
  const warnings = new Set<string>();
  const removed = new Set<number>();
  const latest = new Map<string, number[]>();
  // In docker, the only one of bough's options with one value that adds to the earlier ones.
  const platforms: string[] = [];
  let builder: string | undefined;
  const remove = (places: readonly number[] = []) => {
    for (const place of places) removed.add(place);
  };
  const readOption = (token: Option) => {
    const { name, rawName, value } = token;
    const places = placesOf(token);
    const shape = own[name] ?? definitions[name] ?? foreign?.shapes[name];
    const isFlag = shape?.type === "boolean" || isCheck(name);
    if (value === "" && isFlag)
      throw new CommandLineError(`${rawName} takes no value but true or false, not ""`);
    const former = formerOptions[rawName];
    if (former !== undefined) warnings.add(former);
    if (name === "builder") builder = value || undefined;
    if (former !== undefined || name === "builder" || isDebug(token)) {
      remove(places);
      return;
    }
    if (name === "platform" && value) platforms.push(value);
    const isLeftOut = isUnset(token, isFlag, command);
    if (isLeftOut) remove(places);
    if (!takesOne(own[name])) return;
    remove(latest.get(name));
    if (!isLeftOut) latest.set(name, places);
  };
  for (const token of readTokens(words, definitions, foreign?.shapes))
    if (token.kind === "option") readOption(token);
  if (platforms.length > 1) remove(latest.get("platform"));
  const joined = platforms.length > 1 ? [`--platform=${platforms.join(",")}`] : [];
  return {
    builder,
    others: [...joined, ...words.filter((_, index) => !removed.has(index))],
    warnings: [...warnings],
  };
}

/** In docker, an option that takes a value takes the next word for it, whatever that is: `--provenance ""`. */
function withValues(definitions: ArgumentDefinitions): ArgumentDefinitions {
  const entries = Object.entries(definitions).map(([name, definition]) => {
    const { optional: _, ...others } = definition;
    return [name, isCheck(name) ? definition : others] as const;
  });
  return Object.fromEntries(entries) as ArgumentDefinitions;
}

/** Returns the places of an option and of its value among the words. */
function placesOf({ index, value, inlineValue }: Option): number[] {
  return value !== undefined && inlineValue === false ? [index, index + 1] : [index];
}

function takesOne(definition: ArgumentDefinition | undefined): boolean {
  return definition !== undefined && definition.type !== "boolean" && definition.multiple !== true;
}

/** bough's takes a level, too. */
function isCheck(name: string): boolean {
  return name === "check";
}

/** Writes `-t=x` as `--tag=x`: in Go's command lines the letter of an option may be followed by `=`, too. */
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

/** True for a value that stands for none. Throws for one that buildx refuses. */
function isUnset({ name, rawName, value }: Option, isFlag: boolean, command: Command): boolean {
  if (isFlag || value === undefined) return false;
  if (sizes.includes(name) && /^0+(\.0*)?([bkmgtp]?(i?b)?)$/i.test(value)) return true;
  if (value !== "" || parsed.includes(name)) return false;
  const { name: commandName = "" } = command.definition.meta as { name?: string };
  if (neverEmpty[commandName]?.includes(name) !== true) return true;
  throw usageError(`${rawName} is empty`, "Leave it out, or give it a value.");
}
