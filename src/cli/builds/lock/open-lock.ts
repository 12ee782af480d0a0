import { existsSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import { notLocked, type Pins, type ReferenceLock } from "../../../builder/reference-lock.ts";
import type { CheckedLock } from "../../../check/lints/references.ts";
import { pathWithin } from "../../../context/file-system/display-path.ts";
import { parseDockerfile } from "../../../dockerfile/parse.ts";
import { usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { quote } from "../../../programs/quote.ts";
import { nearest } from "../../../suggest.ts";
import type { Log } from "../../../terminal/log.ts";
import { type ResultPlace, requireWritable } from "../../command-line/result.ts";
import { isStandardInput } from "../../process/same-file.ts";
import type { BuildInputs } from "../inputs.ts";
import type { BuildRequest } from "../request.ts";
import { changeLock, type Kind, keyOf, type LockEntry, readLock, showPin } from "./lock-file.ts";
import { mentionsIn } from "./mentions.ts";

/** The lock of one build. */
export interface OpenedLock extends CheckedLock {
  lock: ReferenceLock;
  /** Throws a BoughError of kind `usage` if there is no file yet, and none can be written. */
  requireWritable(): void;
  /** Writes what the build has found, once it has succeeded. */
  save(inputs: Pick<BuildInputs, "context" | "dockerfile" | "fetched" | "location">, log: Log): void;
}

type LockChoice = Pick<BuildRequest["options"], "locked" | "update-lock">;

/** Opens the lock of `--lock`. Throws a BoughError of kind `usage` for one that can't be used. */
export function openLock(place: ResultPlace, options: LockChoice): OpenedLock {
  const entries = readLock(place);
  const isFrozen = options.locked === true;
  const updates = readUpdates(options, entries ?? [], place);
  if (isFrozen && entries === undefined)
    throw usageError(
      wording`${{ option: "lock" }} ${place.given}: no such file`,
      wording`${{ option: "locked" }} writes none. ${withoutLocked}`,
    );
  return createLock(place, new Map(entries?.map((entry) => [keyOf(entry), entry])), {
    ...{ isFrozen, updates, isFile: entries !== undefined },
  });
}

const withoutLocked = wording`Build without ${{ option: "locked" }} where the lock may change, and commit it.`;

type Updates = (entry: Pick<LockEntry, "kind" | "name">) => boolean;

/** Reads `--update-lock [NAME]`. */
function readUpdates(
  { locked, "update-lock": names = [] }: LockChoice,
  entries: readonly LockEntry[],
  { given }: ResultPlace,
): { isForAll: boolean; covers: Updates } {
  if (names.length > 0 && locked === true)
    throw usageError(
      wording`${{ option: "locked" }} and ${{ option: "update-lock" }} cannot be used together`,
      withoutLocked,
    );
  // As of an option without a value.
  if (names.includes("true")) return { isForAll: true, covers: () => true };
  for (const name of names) {
    if (entries.some((entry) => means(name, entry))) continue;
    const meant = nearest(
      name,
      entries.map((entry) => entry.name),
    );
    throw usageError(
      wording`${{ option: "update-lock" }}=${name}: ${given} has no entry of that name`,
      meant === undefined
        ? "Give a name as the lock has it; without a name, all are updated."
        : `Did you mean ${meant}?`,
    );
  }
  return { isForAll: false, covers: (entry) => names.some((name) => means(name, entry)) };
}

/** An image may be given without its tag, a repository without its ref. */
function means(given: string, { kind, name }: Pick<LockEntry, "kind" | "name">): boolean {
  if (given === name) return true;
  if (kind === "image") return name.replace(/:[^:/]*$/, "") === given;
  return kind === "git" && name.replace(/#.*$/s, "") === given;
}

/** An entry as the build has used it. */
interface Use {
  kind: Kind;
  name: string;
  pin: Pins[Kind];
  /** True if the lock had another one, or none. */
  isNew: boolean;
}

interface LockOptions {
  /** `--locked` */
  isFrozen: boolean;
  /** `--update-lock` */
  updates: ReturnType<typeof readUpdates>;
  /** False if the build writes the first lock. */
  isFile: boolean;
}

function createLock(
  place: ResultPlace,
  known: ReadonlyMap<string, LockEntry>,
  { isFrozen, updates, isFile }: LockOptions,
): OpenedLock {
  const path = place.given;
  const begun = new Map<string, Promise<Pins[Kind]>>();
  const uses = new Map<string, Use>();
  const leftOut = new Set<string>();
  const obtain = async (kind: Kind, name: string, find: () => Promise<Pins[Kind]>) => {
    const key = keyOf({ kind, name });
    const entry = known.get(key);
    const isKept = entry !== undefined && !updates.covers(entry);
    if (entry === undefined && isFrozen) throw notLocked(name, path);
    const pin = isKept ? entry.pin : await find();
    uses.set(key, { kind, name, pin, isNew: !isKept });
    return pin;
  };
  return {
    path,
    isFrozen,
    requireWritable() {
      if (!isFile) requireWritable(place);
    },
    has: (kind, name) => known.has(keyOf({ kind, name })),
    lock: {
      path,
      pin<Each extends Kind>(kind: Each, name: string, find: () => Promise<Pins[Each]>) {
        const key = keyOf({ kind, name });
        const pin = begun.getOrInsertComputed(key, () => obtain(kind, name, find));
        // What has failed may succeed for another stage.
        pin.catch(() => begun.delete(key));
        // The key has the kind.
        return pin as Promise<Pins[Each]>;
      },
      leaveOut: (name) => void leftOut.add(name),
      adviceFor: (name) =>
        wording`If that is right, \`${{ option: "update-lock" }}=${quote(name)}\` takes what it is now.`,
    },
    save(inputs, log) {
      for (const name of [...leftOut].sort())
        log.warn(`${path} leaves out ${name}: it is a name of the service, not of a registry`);
      if (isFrozen) return;
      const { text, path: shown } = inputs.dockerfile;
      // As it is written: no --build-context replaces its stages.
      const own = { label: labelOf(inputs, place), mentions: mentionsIn(parseDockerfile(text, shown)) };
      let report: string[] = [];
      changeLock(place, (entries) => {
        const changed = mergeUses(entries, uses, own, {
          isForAll: updates.isForAll,
          directory: dirname(place.path),
        });
        report = changed.report;
        return changed.entries;
      });
      for (const line of report.sort()) log.info(`${path}: ${line}`);
    },
  };
}

interface OwnDockerfile {
  label: string;
  mentions: ReturnType<typeof mentionsIn>;
}

/**
 * Returns the entries after a build, and what has changed. Entries of other Dockerfiles and of lines that were not performed stay.
 * An entry goes when none of its Dockerfiles may mean it any more; if all were to be updated, also when this one does not for certain.
 */
function mergeUses(
  before: readonly LockEntry[],
  uses: ReadonlyMap<string, Use>,
  own: OwnDockerfile,
  { isForAll, directory }: { isForAll: boolean; directory: string },
): { entries: LockEntry[]; report: string[] } {
  const report: string[] = [];
  const merged = new Map(before.map((entry) => [keyOf(entry), entry]));
  for (const [key, { isNew, ...use }] of uses) {
    const old = merged.get(key);
    // Of the same kind, as the key has it.
    const entry = { ...use, dockerfiles: old?.dockerfiles ?? [] } as LockEntry;
    if (old === undefined) report.push(`added ${use.name} ${showPin(entry)}`);
    else if (isNew && showPin(old) !== showPin(entry))
      report.push(`updated ${use.name} from ${showPin(old)} to ${showPin(entry)}`);
    if (old === undefined || isNew) merged.set(key, entry);
  }
  const entries = [...merged].flatMap(([key, entry]) => {
    const mention = own.mentions(entry);
    const isUsed = uses.has(key);
    const isOwn = mention === "certain" || (mention === "possible" && (isUsed || !isForAll));
    const others = entry.dockerfiles.filter((path) => path !== own.label && isThere(path, directory));
    const dockerfiles = isOwn ? [...others, own.label] : others;
    // One of a --build-context, or of a base's trigger, is in no Dockerfile.
    const isStray = entry.dockerfiles.length === 0 && !isForAll;
    if (isUsed || isStray || dockerfiles.length > 0) return [{ ...entry, dockerfiles }];
    report.push(`dropped ${entry.name}`);
    return [];
  });
  return { entries, report };
}

function labelOf(
  { context, dockerfile, fetched, location }: Parameters<OpenedLock["save"]>[0],
  lock: ResultPlace,
): string {
  const { absolutePath } = dockerfile;
  if (isStandardInput(absolutePath)) return "-";
  const inContext = pathWithin(context.absolutePath, absolutePath);
  if (fetched !== undefined && inContext !== undefined)
    return fetched.shown === "-" ? "-" : `${location}/${inContext}`;
  return relative(dirname(lock.path), absolutePath).split(sep).join(posix.sep);
}

/** False for the path of a Dockerfile that has been removed. */
function isThere(label: string, directory: string): boolean {
  const isAddress = label === "-" || /^([\w+.-]+:\/\/|[\w-]+@[\w.-]+:)/.test(label);
  return isAddress || existsSync(join(directory, label));
}
