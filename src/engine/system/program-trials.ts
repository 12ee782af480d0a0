import { realpathSync } from "node:fs";
import { basename } from "node:path";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { runHelper } from "../../programs/helper.ts";
import { findOptionalProgram, helperEnvironment, type ProgramName, packageOf } from "./programs.ts";

/** Options of tar for the PAX format: reproducible, with everything that a Linux file system holds. */
export const archiveOptions = [
  "--format=posix",
  // Leaves out tar's process ID, which older versions put into a record's name.
  "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
  "--sort=name",
  "--numeric-owner",
  "--sparse",
  "--xattrs",
  "--xattrs-include=*",
  // overlayfs's own marks are not part of the image.
  "--xattrs-exclude=*.overlay.*",
];

/** Arguments with which a program does nothing, but that it refuses if it lacks an option that the engine uses. */
const trials: readonly (readonly [ProgramName, readonly string[]])[] = [
  ["setpriv", ["--pdeathsig", "KILL", "true"]],
  ["unshare", ["--kill-child", "true"]],
  ["tar", ["--create", ...archiveOptions, "--files-from=/dev/null", "--file=/dev/null"]],
  ["sync", ["-f", "/proc"]],
  ["nice", ["-n", "1", "true"]],
];

/** Normally each takes a few milliseconds. */
const maxTrialSeconds = 10;

/**
 * Returns an error that names the first program in PATH that lacks an option that the engine uses, as BusyBox's programs do: they
 * have the names of the programs that the engine needs. To be called to explain a failure, as it starts each program once.
 *
 * @param names only these programs are tried
 */
export async function findWrongProgram(
  environment: Environment,
  clock: Clock,
  signal?: AbortSignal,
  names?: readonly ProgramName[],
): Promise<BoughError | undefined> {
  const place = {
    environment: helperEnvironment(environment),
    clock,
    seconds: maxTrialSeconds,
    ...(signal === undefined ? {} : { signal }),
  };
  for (const [program, words] of trials) {
    if (names?.includes(program) === false) continue;
    const path = findOptionalProgram(program, environment);
    if (path === undefined) continue;
    const { status, stderr } = await runHelper([path, ...words], place);
    if (status !== 0) return wrongProgram(program, path, stderr.trim() || `it exited with ${status}`);
  }
  return undefined;
}

function wrongProgram(program: ProgramName, path: string, errorOutput: string): BoughError {
  const [line = ""] = errorOutput.split("\n");
  // A message begins with the program's name or path.
  const reason = line.replace(/^\S+: /, "");
  return new BoughError(
    `${path}${makerOf(path)} is not the ${program} that the embedded engine needs: ${reason}`,
    {
      hint: `Install the ${program} of ${packageOf(program)}, and put its directory before that of ${path} in PATH.`,
    },
  );
}

/** Returns the program that a path leads to, if it has another name: BusyBox's programs are links to one. */
function makerOf(path: string): string {
  try {
    const name = basename(realpathSync(path));
    return name === basename(path) ? "" : ` (${name})`;
  } catch {
    return "";
  }
}
