/** What is kept of a build that had nothing to do, for the next one like it. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BuildEvent } from "../../../builder/events.ts";
import { requireOwnDirectory } from "../../../own-path.ts";
import type { AskedQuestion } from "./asked-questions.ts";
import type { BuildIdentity } from "./identity.ts";
import type { PathStates } from "./path-states.ts";

export interface RememberedBuild {
  /** The program's own way to keep it. */
  format: typeof format;
  /** When what the build uses was last noted as used. Milliseconds since the epoch. */
  usedAt: number;
  /** The build context, and where its path leads with all links resolved. */
  context: { path: string; realPath: string };
  /** What the paths of the Dockerfile and the ignore files lead to. */
  inputs: PathStates;
  /** Databases, and directories beside them. */
  known: PathStates;
  /** The databases' write-ahead logs. */
  logs: PathStates;
  /** All that was looked at in the context, by paths relative to it. */
  files: PathStates;
  /** What a service was asked, in this order. */
  questions: readonly AskedQuestion[];
  /** What the build said, in this order. */
  told: readonly Told[];
}

/** A line of the log, or an event. */
export type Told = { info: string } | BuildEvent;

type Place = Pick<BuildIdentity, "directory" | "name">;

const format = 1;
/** What builds use is told from what they don't by the hour of their last one: see `noteBuild` of the store's sessions. */
const maxAgeMilliseconds = 3_600_000;
/** One more removes the oldest. */
const maxBuilds = 100;
/** Characters. */
const maxLength = 4 * 1024 * 1024;

/** `undefined` where nothing is, nothing that makes sense, or what is too old. `now`: milliseconds since the epoch. */
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

/** Throws where it can't be written. `now`: milliseconds since the epoch. */
export function writeRememberedBuild(
  { directory, name }: Place,
  build: Omit<RememberedBuild, "format">,
  now: number,
): void {
  // A warning of no line says so.
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

/** What a process had no time to rename is among them. */
function removeOld(directory: string, now: number): void {
  const builds = readdirSync(directory).map((name) => {
    const path = join(directory, name);
    return { path, writtenAt: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 };
  });
  builds.sort((one, other) => other.writtenAt - one.writtenAt);
  for (const [index, { path, writtenAt }] of builds.entries())
    if (index >= maxBuilds - 1 || writtenAt < now - maxAgeMilliseconds) rmSync(path, { force: true });
}

/** What has that format, under a name with the program in it, was written by this very one. */
function isRemembered(value: unknown): value is RememberedBuild {
  return typeof value === "object" && value !== null && "format" in value && value.format === format;
}
