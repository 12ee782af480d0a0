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

interface Trial {
  program: ProgramName;
  /** Arguments with which the program does nothing, but that it refuses if it lacks an option that the engine uses. */
  words: readonly string[];
  /** The first version of its package that has the option. */
  since?: string;
}

const trials = {
  setpriv: { program: "setpriv", words: ["--pdeathsig", "KILL", "true"] },
  unshare: { program: "unshare", words: ["--kill-child", "true"] },
  tar: {
    program: "tar",
    words: ["--create", ...archiveOptions, "--files-from=/dev/null", "--file=/dev/null"],
  },
  sync: { program: "sync", words: ["-f", "/proc"] },
  nice: { program: "nice", words: ["-n", "1", "true"] },
  // As old as `--map-auto`, with which unshare would look for the user's sub-ids at once.
  userMapping: { program: "unshare", words: ["--map-users", "0,0,1", "--help"], since: "2.38" },
} as const satisfies Record<string, Trial>;

/** Trials of what every engine uses. */
export const engineTrials = ["setpriv", "unshare", "tar", "sync", "nice"] as const;

/** Normally each takes a few milliseconds. */
const maxTrialSeconds = 10;

/**
 * Returns an error that names the first program in PATH that lacks an option that the engine uses, as BusyBox's programs do: they
 * have the names of the programs that the engine needs. To be called to explain a failure, as it starts each program once.
 *
 * @param names the trials of the programs that have failed: another one would not be the reason
 */
export async function findWrongProgram(
  names: readonly (keyof typeof trials)[],
  { environment, clock, signal }: { environment: Environment; clock: Clock; signal?: AbortSignal },
): Promise<BoughError | undefined> {
  const place = {
    environment: helperEnvironment(environment),
    clock,
    seconds: maxTrialSeconds,
    ...(signal === undefined ? {} : { signal }),
  };
  for (const trial of names.map((name): Trial => trials[name])) {
    const path = findOptionalProgram(trial.program, environment);
    if (path === undefined) continue;
    const { status, stderr } = await runHelper([path, ...trial.words], place);
    if (status !== 0) return wrongProgram(trial, path, stderr.trim() || `it exited with ${status}`);
  }
  return undefined;
}

function wrongProgram({ program, since }: Trial, path: string, errorOutput: string): BoughError {
  const version = since === undefined ? "" : ` ${since} or later`;
  const [line = ""] = errorOutput.split("\n");
  // A message begins with the program's name or path.
  const reason = line.replace(/^\S+: /, "");
  return new BoughError(
    `${path}${makerOf(path)} is not the ${program} that the embedded engine needs: ${reason}`,
    {
      hint: `Install the ${program} of ${packageOf(program)}${version}, and put its directory before that of ${path} in PATH.`,
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
