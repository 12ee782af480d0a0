/** The file of `--lock`: JSON in one form for the same references, so that a version control system shows what has moved. */
import { realpathSync } from "node:fs";
import { isCommitHash } from "../../../builder/addresses/repository-address.ts";
import type { Pins } from "../../../builder/reference-lock.ts";
import { BoughError, messageOf, usageError } from "../../../errors.ts";
import { hexOf, isDigest } from "../../../image/digest.ts";
import { wording } from "../../../messages/wording.ts";
import { readRegularFile } from "../../../open-for-reading.ts";
import { asRecord, asText, type JsonRecord } from "../../../service/http/json.ts";
import { errorCode, reasonOf } from "../../../system-error.ts";
import { jsonText } from "../../../terminal/json-text.ts";
import { type ResultPlace, writeAllOrNone } from "../../command-line/result.ts";

export type Kind = keyof Pins;

/** One reference and what it means. */
export type LockEntry = {
  [Each in Kind]: {
    kind: Each;
    /** The name in the Dockerfile, with variables replaced and secrets masked. */
    name: string;
    pin: Pins[Each];
    /** Paths of the Dockerfiles with a line that may mean it, relative to the lock's directory. */
    dockerfiles: readonly string[];
  };
}[Kind];

export function keyOf({ kind, name }: Pick<LockEntry, "kind" | "name">): string {
  return `${kind} ${name}`;
}

const version = 1;
/** More than any Dockerfile refers to. */
const maxBytes = 16 * 1024 * 1024;

/** Reads a lock; `undefined` if there is no such file. Throws a BoughError of kind `usage` if it can't be read or used. */
export function readLock(place: ResultPlace): LockEntry[] | undefined {
  const text = readText(place);
  return text === undefined ? undefined : parseLock(text, place.given);
}

function readText({ path, given }: ResultPlace): string | undefined {
  try {
    return readRegularFile(path, maxBytes).toString();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw new BoughError(wording`${{ option: "lock" }} ${given}: cannot read it: ${reasonOf(error)}`, {
      kind: "usage",
      cause: error,
    });
  }
}

function parseLock(text: string, given: string): LockEntry[] {
  const refuse = (problem: string, cause?: unknown) =>
    new BoughError(wording`${{ option: "lock" }} ${given}: this is not a lock of bough: ${problem}`, {
      kind: "usage",
      cause,
      hint: /^<{7} /m.test(text)
        ? "Resolve the conflict of git in it: each entry is complete in itself."
        : "Restore it from version control, or remove it: a build writes a new one.",
    });
  const record = asRecord(parseJson(text, refuse));
  if (record === undefined) throw refuse("it is no JSON object");
  if (typeof record.version === "number" && record.version > version)
    throw usageError(
      wording`${{ option: "lock" }} ${given} was written by a newer bough (version ${record.version} of the format)`,
      "Use that bough, or remove the file: a build writes a new one.",
    );
  if (record.version !== version) throw refuse(`its version is ${JSON.stringify(record.version)}`);
  if (!Array.isArray(record.references)) throw refuse("it has no list `references`");
  const entries = record.references.map((item, index) => {
    const entry = readEntry(asRecord(item) ?? {});
    if (typeof entry !== "string") return entry;
    throw refuse(`reference ${index + 1}: ${entry}`);
  });
  const keys = new Set<string>();
  for (const { kind, name } of entries) {
    const key = keyOf({ kind, name });
    if (keys.has(key)) throw refuse(`it has two entries for ${name}`);
    keys.add(key);
  }
  return entries;
}

function parseJson(text: string, refuse: (problem: string, cause: unknown) => BoughError): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw refuse(messageOf(error), error);
  }
}

/** Returns the reason if it is not an entry. */
function readEntry(record: JsonRecord): LockEntry | string {
  const { kind, digest, dockerfiles = [] } = record;
  const name = asText(record.name) ?? "";
  if (name === "") return "it has no name";
  if (!Array.isArray(dockerfiles) || dockerfiles.some((path) => typeof path !== "string"))
    return `${name}: dockerfiles is not a list of paths`;
  const common = { name, dockerfiles: dockerfiles.map(String) };
  if (kind === "image" || kind === "url") {
    if (!isDigest(digest)) return `${name}: its digest is not sha256: and 64 hexadecimal digits`;
    return kind === "image" ? { kind, pin: digest, ...common } : { kind, pin: hexOf(digest), ...common };
  }
  if (kind !== "git") return `${name}: unknown kind ${JSON.stringify(kind)}`;
  const commit = asText(record.commit) ?? "";
  const ref = record.ref === undefined ? undefined : (asText(record.ref) ?? "");
  if (!isCommitHash(commit)) return `${name}: its commit is not the hash of a commit`;
  if (ref !== undefined && !/^refs\/[^\s:^~?*[\\]+$/.test(ref))
    return `${name}: its ref is not the full name of one`;
  return { kind, pin: { commit, ref }, ...common };
}

function formatLock(entries: readonly LockEntry[]): string {
  const sorted = entries.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  const references = sorted.map((entry) => ({
    ...{ kind: entry.kind, name: entry.name },
    ...fieldsOf(entry),
    ...(entry.dockerfiles.length > 0 && { dockerfiles: entry.dockerfiles.toSorted() }),
  }));
  return `${jsonText({ version, references }, { indent: 2 })}\n`;
}

function fieldsOf(entry: LockEntry): object {
  if (entry.kind !== "git") return { digest: showPin(entry) };
  const { commit, ref } = entry.pin;
  return { commit, ref };
}

/** Returns what an entry has, for people. */
export function showPin(entry: Pick<LockEntry, "kind" | "pin">): string {
  const { kind, pin } = entry;
  if (typeof pin !== "string") return pin.commit;
  return kind === "url" ? `sha256:${pin}` : pin;
}

/**
 * Replaces the lock by what `change` makes of its entries, at once. If another process has written it meanwhile, `change` gets those
 * entries. Writes nothing if the entries stay the same.
 */
export function changeLock(
  place: ResultPlace,
  change: (entries: readonly LockEntry[]) => readonly LockEntry[],
): void {
  // A link stays one.
  const path = realPath(place.path);
  for (;;) {
    const before = readText(place);
    const entries = before === undefined ? [] : parseLock(before, place.given);
    const text = formatLock(change(entries));
    if (before !== undefined && text === formatLock(entries)) return;
    if (readText(place) !== before) continue;
    write({ ...place, path, text });
    return;
  }
}

function write(file: ResultPlace & { text: string }): void {
  try {
    writeAllOrNone([file]);
  } catch (error) {
    if (!(error instanceof BoughError)) throw error;
    throw new BoughError(error.wording, {
      hint: wording`The image is built: build again, from the cache, once the file can be written, or with ${{ option: "locked" }}.`,
      cause: error,
    });
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return path;
    throw error;
  }
}
