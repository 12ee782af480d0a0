import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { referencesIn } from "../../dockerfile/words/references.ts";
import type { Lookup } from "../../dockerfile/words/words.ts";
import type { ImageConfig } from "../../image/config.ts";
import { extend } from "../../persistent-map.ts";

/** What decides the value of every word of a stage. */
export interface Scope {
  env: ReadonlyMap<string, string>;
  args: Arguments;
  /** The image's own variables, once they are known. They count where nothing else knows a name. */
  inherited: ReadonlyMap<string, string> | undefined;
}

/** A stage as far as its words are concerned; each world has more in it. */
export interface StageScope extends Scope {
  /** True of variables whose values only the image could tell; false of some that others depended on before. */
  unknown: ReadonlyMap<string, boolean>;
  /** The base image's, with what the instructions make of it. `Env` stays the base's own: what the Dockerfile sets is in `env`. */
  config: ImageConfig;
  /** True if the stage has a CMD of its own, which is not part of `config`. */
  ownsCmd?: boolean;
  /** MAINTAINER, which an image has beside its `config`. */
  author?: string;
}

/** Declared build arguments. */
export type Arguments = ReadonlyMap<string, Argument>;

export interface Argument {
  /** `undefined`: declared without a default, and nobody gave a value. */
  value: string | undefined;
  /** It counts before an ENV of that name: as `--build-arg` gives it; with `--docker`: it stands behind that ENV. */
  overridesEnv: boolean;
}

/**
 * The one rule of precedence: `--build-arg`, then ENV so far, then the ARG's default, then what the image itself sets;
 * `undefined` for unknown names. Texts, chain hashes and requests all go by it.
 */
export function lookUp({ env, args, inherited }: Partial<Scope>): Lookup {
  return (name) => {
    const argument = args?.get(name);
    if (argument?.overridesEnv) return argument.value;
    return env?.get(name) ?? argument?.value ?? inherited?.get(name);
  };
}

/** The variables that the Dockerfile sets, with the values that `lookUp` has for them. */
export function effectiveEnv({ env, args }: Pick<Scope, "env" | "args">): Map<string, string> {
  const lookup = lookUp({ env, args });
  return new Map([...env].map(([name, value]) => [name, lookup(name) ?? value]));
}

/** What a RUN gets as its environment: each declared name with the value that `lookUp` has for it. */
export function environmentOf(
  scope: Pick<Scope, "env" | "args">,
  passedThrough: ReadonlyMap<string, string>,
): Record<string, string> {
  const environment: Record<string, string> = Object.fromEntries(passedThrough);
  for (const [name, { value }] of scope.args) if (value !== undefined) environment[name] = value;
  for (const [name, value] of effectiveEnv(scope)) environment[name] = value;
  return environment;
}

/** An ARG's effective value: `--build-arg`, then its own default, then that of an automatic one or an ARG before FROM. */
export function declareArgument(
  args: Arguments,
  name: string,
  defaultValue: string | undefined,
  supplied: ReadonlyMap<string, string>,
  globals: Arguments = new Map(),
): Arguments {
  // Declared again without a default it keeps what it has, as in Docker.
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
 * Build arguments that need no ARG (Dockerfile reference, "Predefined ARGs"): proxies. They reach a RUN's
 * environment and never the chain hash.
 */
export function predefinedArguments(supplied: ReadonlyMap<string, string>): Map<string, string> {
  return new Map([...supplied].filter(([name]) => predefinedNames.has(name)));
}

/** Returns whether a word comes to the same whatever the base image sets: that is not looked into. */
export type IsKnown = (word: string) => boolean;

export function createIsKnown(
  { env, args, inherited, unknown }: StageScope,
  escape: EscapeCharacter,
): IsKnown {
  return (word) =>
    referencesIn(word, escape).every(({ name, isRequired }) => {
      // The image has been asked, or is not part of this.
      if (inherited !== undefined) return true;
      if (unknown.get(name) === true) return false;
      // What says itself what stands for a missing value is taken at its word.
      return !isRequired || env.has(name) || args.has(name) || name === "PATH";
    });
}

/** The names whose values are not known, after some have got new ones. */
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
