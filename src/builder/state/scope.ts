import { extend } from "../../columns/persistent-map.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { referencesIn } from "../../dockerfile/words/references.ts";
import type { Lookup } from "../../dockerfile/words/words.ts";
import type { ImageConfig } from "../../image/config.ts";

/** The variables that the words of a stage can use. */
export interface VariableScope {
  env: ReadonlyMap<string, string>;
  args: Arguments;
  /** The image's own variables, once they are known. They count for names that nothing else sets. */
  inherited: ReadonlyMap<string, string> | undefined;
}

/** The part of a stage that its words depend on. Each backend adds more. */
export interface StageScope extends VariableScope {
  /** True for variables whose values depend on the image's; false for variables whose values did so before. */
  unknown: ReadonlyMap<string, boolean>;
  /** The base image's configuration, changed by the instructions. `Env` stays the base's: the Dockerfile's is in `env`. */
  config: ImageConfig;
  /** True if the stage has its own CMD, which `config` does not tell. */
  ownsCmd?: boolean;
  /** The author set by MAINTAINER, which an image has outside its `config`. */
  author?: string;
}

/** Declared build arguments. */
export type Arguments = ReadonlyMap<string, Argument>;

export interface Argument {
  /** `undefined`: declared without a default and given no value. */
  value: string | undefined;
  /** True if it overrides an ENV of that name: if `--build-arg` gives it; with `--docker`, if it comes after that ENV. */
  overridesEnv: boolean;
  /** The value of one of `scannerArguments`, where that is not a variable of the stage. */
  forScanner?: string | undefined;
}

/** The arguments that choose what a scanner of packages sees besides the result. */
export const scannerArguments = {
  context: "BUILDKIT_SBOM_SCAN_CONTEXT",
  stage: "BUILDKIT_SBOM_SCAN_STAGE",
} as const;

/**
 * Returns a lookup with the one rule of precedence: `--build-arg`, then earlier ENVs, then the ARG's default, then the image's
 * own variables; `undefined` for unknown names. Words, chain hashes and requests all use it.
 */
export function variableLookup({ env, args, inherited }: Partial<VariableScope>): Lookup {
  return (name) => {
    const argument = args?.get(name);
    if (argument?.overridesEnv) return argument.value;
    return env?.get(name) ?? argument?.value ?? inherited?.get(name);
  };
}

/** Returns the variables that the Dockerfile sets, with the values that `variableLookup` gives them. */
export function effectiveEnv({ env, args }: Pick<VariableScope, "env" | "args">): Map<string, string> {
  const lookup = variableLookup({ env, args });
  return new Map([...env].map(([name, value]) => [name, lookup(name) ?? value]));
}

/** Returns a RUN's environment: each declared name with the value that `variableLookup` gives it. */
export function environmentOf(
  scope: Pick<VariableScope, "env" | "args">,
  passedThrough: ReadonlyMap<string, string>,
): Record<string, string> {
  const environment: Record<string, string> = Object.fromEntries(passedThrough);
  for (const [name, { value }] of scope.args) if (value !== undefined) environment[name] = value;
  for (const [name, value] of effectiveEnv(scope)) environment[name] = value;
  return environment;
}

/** Declares an ARG. Its value is that of `--build-arg`, its own default, or that of an automatic ARG or one before FROM. */
export function declareArgument(
  args: Arguments,
  name: string,
  defaultValue: string | undefined,
  supplied: ReadonlyMap<string, string>,
  globals: Arguments = new Map(),
): Arguments {
  // An ARG declared again without a default keeps its value, as in Docker.
  const value = supplied.get(name) ?? defaultValue ?? globals.get(name)?.value ?? args.get(name)?.value;
  return extend(args, [[name, { value, overridesEnv: supplied.has(name) }]]);
}

const predefinedNames = new Set(
  ["HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY"].flatMap((name) => [
    name,
    name.toLowerCase(),
  ]),
);

/**
 * Returns build arguments that need no ARG (Dockerfile reference, "Predefined ARGs"): proxies. They are in a RUN's environment
 * and never in the chain hash.
 */
export function predefinedArguments(supplied: ReadonlyMap<string, string>): Map<string, string> {
  return new Map([...supplied].filter(([name]) => predefinedNames.has(name)));
}

/** Returns true if a word has the same value whatever the base image sets. Does not read the image. */
export type IsKnown = (word: string) => boolean;

export function createIsKnown(
  { env, args, inherited, unknown }: StageScope,
  escape: EscapeCharacter,
): IsKnown {
  return (word) =>
    referencesIn(word, escape).every(({ name, isRequired }) => {
      // The image's variables are loaded, so every word is known.
      if (inherited !== undefined) return true;
      if (unknown.get(name) === true) return false;
      // A reference with its own default for a missing value counts as known.
      return !isRequired || env.has(name) || args.has(name) || name === "PATH";
    });
}

/** Returns the names whose values are unknown, after some have got new values. */
export function updateUnknown(
  unknown: ReadonlyMap<string, boolean>,
  values: readonly { key: string; value: string | undefined }[],
  isKnown: IsKnown,
): ReadonlyMap<string, boolean> {
  const changed = new Map<string, boolean>();
  for (const { key, value } of values) {
    const isLost = value !== undefined && !isKnown(value);
    if (isLost || unknown.get(key) === true) changed.set(key, isLost || changed.get(key) === true);
  }
  return changed.size === 0 ? unknown : extend(unknown, changed);
}
