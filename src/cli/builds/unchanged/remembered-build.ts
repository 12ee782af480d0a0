/** The record of a build that had nothing to do, for the next identical build. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BuildEvent } from "../../../builder/events.ts";
import { requireOwnDirectory } from "../../../own-path.ts";
import type { BuildIdentity } from "./identity.ts";
import type { PathStates } from "./path-states.ts";
import type { RecordedRequest } from "./recorded-requests.ts";

export interface RememberedBuild {
  /** The version of this format. */
  format: typeof format;
  /** The time of the last use that the session has recorded, in milliseconds since the epoch. */
  usedAt: number;
  /** The build context's absolute path, as given and with all links resolved. */
  context: ContextPath;
  /** The same of each directory of `--build-context`. */
  contexts: readonly ContextPath[];
  /** The Dockerfile and the ignore files, with links followed. */
  inputs: PathStates;
  /** Databases, and directories beside them. */
  known: PathStates;
  /** The databases' write-ahead logs. */
  logs: PathStates;
  /** All paths that were read in the contexts, relative to the build context or absolute. */
  files: PathStates;
  /** Requests to the service, in order. */
  requests: readonly RecordedRequest[];
  /** Log lines and events of the build, in order. */
  output: readonly OutputItem[];
}

export interface ContextPath {
  path: string;
  realPath: string;
}

/** A line of the log, or an event. */
export type OutputItem = { info: string } | BuildEvent;

type Place = Pick<BuildIdentity, "directory" | "name">;

const format = 2;
/** The maximum age of a record. Builds note the use of their session once an hour (`noteBuild`), repeated builds not at all. */
const maxAgeMilliseconds = 3_600_000;
/** The maximum number of records. One more removes the oldest. */
const maxBuilds = 100;
/** The limit in characters. */
const maxLength = 4 * 1024 * 1024;

/** Returns `undefined` if there is no record, or it is invalid or too old. `now`: milliseconds since the epoch. */
export function readRememberedBuild({ directory, name }: Place, now: number): RememberedBuild | undefined {
  try {
    if (!requireOwnDirectory(directory, { isLinkable: true })) return undefined;
    const value: unknown = JSON.parse(readFileSync(join(directory, name), "utf8"));
    if (!isRemembered(value)) return undefined;
    const age = now - value.usedAt;
    return age >= 0 && age < maxAgeMilliseconds ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Throws if it can't be written. `now`: milliseconds since the epoch. */
export function writeRememberedBuild(
  { directory, name }: Place,
  build: Omit<RememberedBuild, "format">,
  now: number,
): void {
  // A warning without a line has null, since JSON drops `undefined`.
  const text = JSON.stringify({ format, ...build }, (field, value: unknown) =>
    field === "line" && value === undefined ? null : value,
  );
  if (text.length > maxLength) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  requireOwnDirectory(directory, { isLinkable: true });
  removeOld(directory, now);
  const temporary = join(directory, `${name}.${crypto.randomUUID()}`);
  try {
    writeFileSync(temporary, text, { flag: "wx", mode: 0o600 });
    renameSync(temporary, join(directory, name));
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

export function forgetBuild({ directory, name }: Place): void {
  rmSync(join(directory, name), { force: true });
}

/** Removes old records, and temporary files that a process did not rename. */
function removeOld(directory: string, now: number): void {
  const builds = readdirSync(directory).map((name) => {
    const path = join(directory, name);
    return { path, writtenAt: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 };
  });
  builds.sort((one, other) => other.writtenAt - one.writtenAt);
  for (const [index, { path, writtenAt }] of builds.entries())
    if (index >= maxBuilds - 1 || writtenAt < now - maxAgeMilliseconds) rmSync(path, { force: true });
}

/** Checks only the format: the record's name is a digest that includes the program, so this very program wrote it. */
function isRemembered(value: unknown): value is RememberedBuild {
  return typeof value === "object" && value !== null && "format" in value && value.format === format;
}
