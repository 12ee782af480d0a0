import { extend } from "../../columns/persistent-map.ts";
import type { BuildJob } from "../job.ts";
import { homeOf } from "../owners/ownership.ts";
import { type Arguments, type StageScope, scannerArguments } from "../state/scope.ts";
import type { StageState } from "../state/state.ts";

/**
 * Starts a stage with Docker's precedence, which is the order of lines: the later one of ENV and ARG wins, with `--build-arg` or
 * without. At a FROM, the ENV of the stage that it names wins. (BuildKit's code has these rules, and Docker follows them.)
 */
export function startAsDocker<Stage extends StageScope>(stage: Stage): Stage {
  const named = [...stage.args].filter(([name]) => !stage.inherited?.has(name));
  const args: Arguments = new Map(
    named.map(([name, argument]) => [
      name,
      { ...argument, overridesEnv: argument.overridesEnv && !stage.env.has(name) },
    ]),
  );
  return { ...stage, args, ownsCmd: false };
}

/** Makes an ENV override earlier arguments of the same names. */
export function overrideArguments(args: Arguments, pairs: readonly { key: string }[]): Arguments {
  const overridden = pairs.flatMap(({ key }) => {
    const argument = args.get(key);
    return argument === undefined ? [] : ([[key, { ...argument, overridesEnv: false }]] as const);
  });
  return overridden.length === 0 ? args : extend(args, overridden);
}

/** The arguments for a scanner of packages. In BuildKit they are not variables of a stage. */
const forScanner = new Set<string>(Object.values(scannerArguments));

/** Declares an ARG: with a value it overrides an earlier ENV, and without one it changes no earlier value. */
export function declareAsDocker(
  args: Arguments,
  name: string,
  defaultValue: string | undefined,
  supplied: ReadonlyMap<string, string>,
  globals: Arguments,
): Arguments {
  const value = supplied.get(name) ?? defaultValue ?? globals.get(name)?.value;
  if (forScanner.has(name)) {
    const given = value ?? args.get(name)?.forScanner;
    return extend(args, [[name, { value: undefined, overridesEnv: false, forScanner: given }]]);
  }
  if (value === undefined && args.has(name)) return args;
  return extend(args, [[name, { value, overridesEnv: value !== undefined }]]);
}

/**
 * Returns the variables that proxies given by `--build-arg` become in a RUN, where they win over ENV and ARG: each by its name in
 * upper and in lower case, because some programs read only one of them. An empty one sets nothing.
 */
export function proxiesAsDocker(proxies: ReadonlyMap<string, string>): Record<string, string> {
  const given = [...proxies].filter(([, value]) => value !== "");
  const inBothCases = given.flatMap(([name, value]) => [
    [name.toUpperCase(), value],
    [name.toLowerCase(), value],
  ]);
  // Where both cases are given with values of their own, each keeps its own.
  return Object.fromEntries([...inBothCases, ...given]);
}

/**
 * Returns the HOME that Docker sets for a process if neither the image nor the Dockerfile sets one: that of its USER. Returns
 * nothing if the service sets it, or if the user can't be looked up.
 */
export async function findHome(stage: StageState, build: BuildJob): Promise<{ HOME?: string }> {
  const user = stage.config.User;
  if (!build.asked.dialect.looksUpUsers || user === undefined || stage.inherited?.has("HOME")) return {};
  if (await build.services.supports.home()) return {};
  const HOME = await homeOf(user, stage, build);
  return HOME === undefined ? {} : { HOME };
}
