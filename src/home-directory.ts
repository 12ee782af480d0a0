import { join } from "node:path";
import { BoughError } from "./errors.ts";

/** Environment variables by their names. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the user's home directory: `HOME`, on Windows `USERPROFILE`, as in docker. */
export function homeDirectory(environment: Environment, platform = process.platform): string {
  const home = findHome(environment, platform);
  if (home instanceof Error)
    throw new BoughError("HOME is not set, and /etc/passwd has no entry for this user", {
      hint: "Set HOME to a directory of your own.",
      cause: home,
    });
  return home;
}

/** Returns the path of something in the home directory; `undefined` if there is none, as for a user of a container. */
export function inHome(environment: Environment, ...names: readonly string[]): string | undefined {
  const home = findHome(environment, process.platform);
  return home instanceof Error ? undefined : join(home, ...names);
}

/** Returns the directory of docker's configuration; `undefined` if the user has no home directory. */
export function findDockerDirectory(environment: Environment): string | undefined {
  return environment.DOCKER_CONFIG || inHome(environment, ".docker");
}

/** Returns the directory of docker's configuration. Throws if the user has no home directory. */
export function dockerDirectory(environment: Environment): string {
  return environment.DOCKER_CONFIG || join(homeDirectory(environment), ".docker");
}

function findHome({ HOME, USERPROFILE }: Environment, platform: NodeJS.Platform): string | Error {
  const home = platform === "win32" ? USERPROFILE || HOME : HOME;
  if (home) return home;
  try {
    // It is nearly always set, and loading node:os takes a fifth of the time that bough needs to read its state.
    return process.getBuiltinModule("node:os").homedir();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
