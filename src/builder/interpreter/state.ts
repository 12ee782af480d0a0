import type { Lookup } from "../../dockerfile/words/words.ts";
import { extend } from "../../persistent-map.ts";
import type { Staged } from "../staging/staged.ts";
import { pathInImage } from "./path-in-image.ts";
import { type Platform, platformArguments } from "./platform.ts";

/** A build so far: what was declared before the first FROM, the finished stages by name, and the stage at work. */
export interface BuildState {
  globals: Arguments;
  /** Of the service, where some instruction asks for it. */
  platform: Platform | undefined;
  stages: ReadonlyMap<string, StageState>;
  stage: StageState | undefined;
  /** RUNs so far, of all stages. */
  runs: number;
}

/** What the next RUN depends on; its chain hash is computed from this and from nothing else. */
export interface StageState {
  /** Of `FROM ... AS name`, in lower case: a later FROM may start from it. */
  name: string | undefined;
  layer: Layer;
  /** Absolute. */
  workdir: string;
  /** WORKDIR makes its directory; true until a layer has done that. */
  workdirIsPending: boolean;
  env: ReadonlyMap<string, string>;
  args: Arguments;
  /** The image's own variables, once they have been asked for. They count where nothing else knows a name. */
  inherited: ReadonlyMap<string, string> | undefined;
  user: string | undefined;
  staged: Staged;
}

/** An image reached by an instruction. */
export interface Layer {
  /** Its chain hash, 64 hex digits. */
  hash: string;
  /** The service's UUID of the image. */
  image: string;
  /** The entry of the session's history. */
  entry: number;
  /** True where nothing had to be run for it. */
  cached: boolean;
  /** That made it, now or then; null for a FROM. */
  operation: string | null;
}

/** Declared build arguments. */
export type Arguments = ReadonlyMap<string, Argument>;

export interface Argument {
  /** `undefined`: declared without a default, and nobody gave a value. */
  value: string | undefined;
  /** From `--build-arg`. */
  isSupplied: boolean;
}

export function startBuild(
  platform: Platform | undefined,
  supplied: ReadonlyMap<string, string>,
): BuildState {
  let globals: Arguments = new Map();
  const automatic = platform === undefined ? [] : platformArguments(platform);
  for (const [name, value] of automatic) globals = declareArgument(globals, name, value, supplied);
  return { globals, platform, stages: new Map(), stage: undefined, runs: 0 };
}

export function startStage(name: string | undefined, layer: Layer): StageState {
  return {
    name,
    layer,
    workdir: "/",
    workdirIsPending: false,
    env: new Map(),
    args: new Map(),
    inherited: undefined,
    user: undefined,
    staged: new Map(),
  };
}

/** An ARG's effective value: `--build-arg`, then its own default, then that of an automatic one or an ARG before FROM. */
export function declareArgument(
  args: Arguments,
  name: string,
  defaultValue: string | undefined,
  supplied: ReadonlyMap<string, string>,
  globals: Arguments = new Map(),
): Arguments {
  const value = supplied.get(name) ?? defaultValue ?? globals.get(name)?.value;
  return extend(args, [[name, { value, isSupplied: supplied.has(name) }]]);
}

export function setEnvironment<Stage extends Pick<StageState, "env">>(
  stage: Stage,
  pairs: readonly { key: string; value: string }[],
): Stage {
  return {
    ...stage,
    env: extend(
      stage.env,
      pairs.map(({ key, value }) => [key, value]),
    ),
  };
}

export function changeWorkdir(stage: StageState, path: string): StageState {
  return { ...stage, workdir: pathInImage(stage.workdir, path), workdirIsPending: true };
}

/** A new layer holds whatever was staged. */
export function advance(stage: StageState, layer: Layer): StageState {
  return { ...stage, layer, staged: new Map(), workdirIsPending: false };
}

/**
 * Spec 1, "Variable substitution": `--build-arg`, then ENV so far, then the ARG's default, then what the image itself sets;
 * `undefined` for unknown names.
 */
export function lookUp(
  env: ReadonlyMap<string, string>,
  args: Arguments,
  inherited: ReadonlyMap<string, string> = new Map(),
): Lookup {
  return (name) => {
    const argument = args.get(name);
    if (argument?.isSupplied) return argument.value;
    return env.get(name) ?? argument?.value ?? inherited.get(name);
  };
}

/** What a RUN gets as its environment: each declared name with the value that `lookUp` has for it. */
export function environmentOf(
  stage: StageState,
  passedThrough: ReadonlyMap<string, string>,
): Record<string, string> {
  const environment: Record<string, string> = Object.fromEntries(passedThrough);
  for (const [name, { value }] of stage.args) if (value !== undefined) environment[name] = value;
  for (const [name, value] of effectiveEnv(stage)) environment[name] = value;
  return environment;
}

/** ENV, with the value of a `--build-arg` where an ARG has declared the same name. */
export function effectiveEnv({ env, args }: Pick<StageState, "env" | "args">): Map<string, string> {
  const lookup = lookUp(env, args);
  return new Map([...env].map(([name, value]) => [name, lookup(name) ?? value]));
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
