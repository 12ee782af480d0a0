/** What is kept of a build that had nothing to do, for the next one like it. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BuildEvent } from "../../../builder/events.ts";
import { requireOwnDirectory } from "../../../own-path.ts";
import { asRecord } from "../../../service/http/json.ts";
import type { AskedQuestion } from "./asked-questions.ts";
import type { BuildIdentity } from "./identity.ts";
import type { FileStates } from "./observed-files.ts";

export interface RememberedBuild {
  /** Milliseconds since the epoch. */
  builtAt: number;
  /** The build context, and where its path leads with all links resolved. */
  context: { path: string; realPath: string };
  /** What the paths of the Dockerfile and the ignore files lead to. */
  inputs: FileStates;
  /** What bough knows, and the embedded engine. */
  databases: FileStates;
  /** Their write-ahead logs. */
  logs: FileStates;
  /** All that was looked at in the context. */
  files: FileStates;
  /** What a service was asked, in this order. */
  questions: readonly AskedQuestion[];
  /** What the build said, in this order. */
  told: readonly Told[];
}

/** A line of the log, or an event. */
export type Told = { info: string } | BuildEvent;

type Place = Pick<BuildIdentity, "directory" | "name" | "key">;

/** What builds use is told from what they don't by the hour of their last one: see `noteBuild` of the store's sessions. */
const maxAgeMilliseconds = 3_600_000;
/** Above it the oldest goes. */
const maxBuilds = 100;
/** Characters. */
const maxLength = 8 * 1024 * 1024;

/** `undefined` where nothing is, nothing that makes sense, or what is too old. `now`: milliseconds since the epoch. */
export function readRememberedBuild(
  { directory, name, key }: Place,
  now: number,
): RememberedBuild | undefined {
  try {
    if (!requireOwnDirectory(directory, { isLinkable: true })) return undefined;
    const value: unknown = JSON.parse(readFileSync(join(directory, name), "utf8"));
    if (!isOf(key, value)) return undefined;
    const age = now - value.builtAt;
    return age >= 0 && age < maxAgeMilliseconds ? value : undefined;
  } catch {
    return undefined;
  }
}

/** In the place of what was remembered before. Throws where it can't be written. */
export function writeRememberedBuild({ directory, name, key }: Place, build: RememberedBuild): void {
  // A warning of no line says so.
  const text = JSON.stringify({ key, ...build }, (field, value: unknown) =>
    field === "line" && value === undefined ? null : value,
  );
  if (text.length > maxLength) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  requireOwnDirectory(directory, { isLinkable: true });
  removeOldest(directory);
  const temporary = join(directory, `${name}.${crypto.randomUUID()}`);
  try {
    writeFileSync(temporary, text, { flag: "wx", mode: 0o600 });
    renameSync(temporary, join(directory, name));
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** What a process had no time to rename is among them. */
function removeOldest(directory: string): void {
  const names = readdirSync(directory);
  if (names.length < maxBuilds) return;
  const aged = names.map((name) => {
    const path = join(directory, name);
    return { path, writtenAt: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 };
  });
  aged.sort((one, other) => one.writtenAt - other.writtenAt);
  for (const { path } of aged.slice(0, names.length - maxBuilds + 1)) rmSync(path, { force: true });
}

/** What has that key was written by this very program. */
function isOf(key: string, value: unknown): value is RememberedBuild {
  return asRecord(value)?.key === key;
}
