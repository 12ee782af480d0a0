import { existsSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { defaultPath } from "../../image/config.ts";

/** The programs that the engine requires, and the Debian package of each. */
const packages = {
  runc: "runc",
  skopeo: "skopeo",
  unshare: "util-linux",
  setpriv: "util-linux",
  mount: "mount",
  sync: "coreutils",
  nice: "coreutils",
  tar: "tar",
  sh: "dash",
} as const;

/**
 * Packages of optional programs. crun starts a RUN in a third of runc's time. rg and nsenter serve single calls of the API.
 * Without slirp4netns a RUN has the machine's network.
 */
const furtherPackages = {
  crun: "crun",
  rg: "ripgrep",
  nsenter: "util-linux",
  slirp4netns: "slirp4netns",
} as const;

const allPackages = { ...packages, ...furtherPackages };

export type ProgramName = keyof typeof allPackages;

/** Thrown if the machine lacks something that the engine needs; the response's status is 501. */
export class MissingProgramError extends BoughError {}

/**
 * Returns the absolute path of a program. Throws with the package to install if it is missing. Programs are looked for when first
 * needed, so that a fully cached build works without them.
 */
export function findProgram(program: ProgramName, environment: Environment): string {
  const found = findOptionalProgram(program, environment);
  if (found !== undefined) return found;
  throw new MissingProgramError(`${program} is not installed, and the embedded engine needs it`, {
    hint: `Install the package ${allPackages[program]}: apt-get install ${allPackages[program]}`,
  });
}

export function findOptionalProgram(program: ProgramName, environment: Environment): string | undefined {
  const known = found.get(environment) ?? new Map<ProgramName, string>();
  found.set(environment, known);
  const last = known.get(program);
  if (last !== undefined && existsSync(last)) return last;
  const path = Bun.which(program, { PATH: searchPath(environment) }) ?? undefined;
  if (path !== undefined) known.set(program, path);
  return path;
}

/** The paths found so far: each command starts half a dozen programs, and a search path can have a dozen directories. */
const found = new WeakMap<Environment, Map<ProgramName, string>>();

/**
 * Returns the command line of a program that the kernel kills as soon as bough ends, however it ends; the program's own children
 * are not killed. The program must wait for a line on its standard input first: bough may end before the kernel knows that it
 * should do so.
 */
export function killedWithParent(command: readonly string[], environment: Environment): string[] {
  return [findProgram("setpriv", environment), "--pdeathsig", "KILL", ...command];
}

/** Throws if neither crun nor runc is installed. */
export function requireRuntime(environment: Environment): void {
  if (findOptionalProgram("crun", environment) !== undefined) return;
  if (findOptionalProgram("runc", environment) !== undefined) return;
  throw new MissingProgramError(
    "neither crun nor runc is installed, and the embedded engine needs one of them",
    {
      hint: "Install the faster one: apt-get install crun. Where it does not work: apt-get install runc",
    },
  );
}

/** Returns the Debian package of a program. */
export function packageOf(program: ProgramName): string {
  return allPackages[program];
}

/** Returns the missing programs that every build needs, each with its package. */
export function missingPrograms(environment: Environment): { program: ProgramName; package: string }[] {
  return (Object.keys(packages) as (keyof typeof packages)[])
    .filter((program) => Bun.which(program, { PATH: searchPath(environment) }) === null)
    .map((program) => ({ program, package: packages[program] }));
}

/** Returns PATH and the default directories: an ordinary user's PATH often lacks those of runc and mount. */
function searchPath(environment: Environment): string {
  return [environment.PATH, defaultPath].filter((path) => path !== undefined && path !== "").join(":");
}

const passedVariables =
  /^(HOME|USER|LANG|LC_ALL|XDG_RUNTIME_DIR|XDG_CONFIG_HOME|REGISTRY_AUTH_FILE|DOCKER_CONFIG|SSL_CERT_(FILE|DIR)|(HTTPS?|NO|ALL)_PROXY)$/i;

/** Returns the environment of the engine's helpers: none of bough's own settings, and so no token of a remote service. */
export function helperEnvironment(environment: Environment): Record<string, string> {
  const passed = Object.entries(environment).filter(
    ([name, value]) => value !== undefined && passedVariables.test(name),
  );
  return {
    ...(Object.fromEntries(passed) as Record<string, string>),
    PATH: searchPath(environment),
    // A newer mount(8) would use the new mount system calls, which limit one option to 256 bytes.
    LIBMOUNT_FORCE_MOUNT2: "always",
  };
}
