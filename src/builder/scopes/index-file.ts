import { asId, asRecord, asText } from "../../service/http/json.ts";
import { sha256Of } from "../../sha256.ts";
import {
  type EntryFields,
  emptyIndex,
  type ScopeIndex,
  type SectionName,
  sectionNames,
  sections,
  timestamp,
} from "./scope-index.ts";

/** The header before the entries. Its line also has their digests. */
interface IndexHeader {
  scope: string;
  /** `by`: the version of bough that wrote it. `at`: when, in milliseconds since the epoch. */
  by: string;
  at: number;
  /** UUIDs of other images with an index of this scope whose entries are all in this one. */
  merged: readonly string[];
}

export interface IndexFiles {
  index: Uint8Array;
  /** The section that only `--explain` needs. */
  steps: Uint8Array;
}

/** Signs the beginning of an index, which has digests of all the rest. */
export type Sign = (text: Uint8Array) => Signature;
/** Returns the fingerprint of the known key that has signed it; `undefined` if there is none. */
export type Verify = (text: Uint8Array, signature: Signature | undefined) => string | undefined;

interface Signature {
  /** The name of the key, to show. */
  key: string;
  /** Base64. */
  value: string;
}

/** Thrown for an index that can't be used, with the reason. The build goes on without it. */
export class UnusableIndexError extends Error {
  override readonly name = "UnusableIndexError";
  /** True if a newer bough or another program wrote it: it must not be replaced. */
  readonly mustStay: boolean;

  constructor(reason: string, { mustStay = false } = {}) {
    super(reason);
    this.mustStay = mustStay;
  }
}

const format = "bough-cache";
const formatVersion = 1;
const stepsName: SectionName = "steps";

/**
 * Encodes an index in four lines: format and version; the header; its signature or `unsigned`; the entries. A layer's key is its
 * chain hash, the digest of all its inputs. Moving an entry to another key changes the signed text.
 */
export function encodeScopeIndex(index: ScopeIndex, header: IndexHeader, sign?: Sign): IndexFiles {
  const body = encodeSections(index, (name) => name !== stepsName);
  const steps = Buffer.from(encodeSections(index, (name) => name === stepsName));
  const beginning = [
    `${format} ${formatVersion}`,
    JSON.stringify({ ...header, body: sha256Of(body), steps: sha256Of(steps) }),
    "",
  ].join("\n");
  const signature = sign?.(Buffer.from(beginning));
  const lines = [signature === undefined ? "unsigned" : JSON.stringify(signature), body];
  return { index: Buffer.from(beginning + lines.join("\n")), steps };
}

export interface DecodedIndex {
  header: IndexHeader;
  index: ScopeIndex;
  isSigned: boolean;
  /** The fingerprint of the key whose signature was verified. */
  verifiedKey: string | undefined;
  /** `stepsDigest`: the expected digest of the other file. `hasSteps`: true if that has been read. */
  stepsDigest: string;
  hasSteps: boolean;
}

/** @throws UnusableIndexError for a damaged, foreign or newer file, and for one that `verify` rejects */
export function decodeIndex(bytes: Uint8Array, scope: string, verify?: Verify): DecodedIndex {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const versionEnd = lineEnd(file, 0);
  requireFormat(file.toString("utf8", 0, Math.min(versionEnd, maxFormatLine)));
  const headerEnd = lineEnd(file, versionEnd + 1);
  const signatureEnd = lineEnd(file, headerEnd + 1);
  const beginning = file.subarray(0, headerEnd + 1);
  const signature = readSignature(file.toString("utf8", headerEnd + 1, signatureEnd));
  const verifiedKey = verify?.(beginning, signature);
  if (verify !== undefined && verifiedKey === undefined)
    throw new UnusableIndexError(
      signature === undefined ? "it is not signed" : "it is not signed by a known key",
    );
  const header = readHeader(file.toString("utf8", versionEnd + 1, headerEnd));
  if (header.scope !== scope) throw new UnusableIndexError(`it is the index of scope ${header.scope}`);
  const body = file.subarray(signatureEnd + 1);
  if (sha256Of(body) !== header.body) throw damaged();
  const index = emptyIndex();
  decodeSections(body, index);
  const { body: _, steps: stepsDigest, ...rest } = header;
  return {
    header: rest,
    index,
    isSigned: signature !== undefined,
    ...{ verifiedKey, stepsDigest, hasSteps: false },
  };
}

/** Adds the entries of the other file. Ignores a file that does not belong to the index: no layer depends on it. */
export function decodeSteps(bytes: Uint8Array, decoded: DecodedIndex): void {
  decoded.hasSteps = true;
  if (sha256Of(bytes) !== decoded.stepsDigest) return;
  try {
    decodeSections(bytes, decoded.index);
  } catch (error) {
    if (!(error instanceof UnusableIndexError)) throw error;
    decoded.index.steps.clear();
  }
}

const maxFormatLine = 40;

function requireFormat(line: string): void {
  const version = /^bough-cache ([1-9]\d{0,8})$/.exec(line)?.[1];
  if (version === undefined) throw new UnusableIndexError("it is not a bough cache index");
  if (Number(version) !== formatVersion)
    throw new UnusableIndexError(`a newer bough wrote it (format ${version})`, { mustStay: true });
}

function lineEnd(file: Buffer, from: number): number {
  const end = file.indexOf("\n", from);
  if (end === -1) throw from === 0 ? new UnusableIndexError("it is not a bough cache index") : damaged();
  return end;
}

function readHeader(line: string): IndexHeader & { body: string; steps: string } {
  const record = asRecord(parse(line));
  const [scope, by, at] = [asText(record?.scope), asText(record?.by), timestamp(record?.at)];
  const [body, steps] = [asText(record?.body), asText(record?.steps)];
  const merged = Array.isArray(record?.merged) ? record.merged.map(asId) : [];
  if (
    scope === undefined ||
    by === undefined ||
    at === undefined ||
    body === undefined ||
    steps === undefined
  )
    throw damaged();
  return { scope, by, at, merged: merged.filter((image) => image !== undefined), body, steps };
}

function readSignature(line: string): Signature | undefined {
  if (line === "unsigned") return undefined;
  const record = asRecord(parse(line));
  const [key, value] = [asText(record?.key), asText(record?.value)];
  if (key === undefined || value === undefined) throw damaged();
  return { key, value };
}

/** Encodes entries as rows: the key, then the values in the order of the section's fields. */
function encodeSections(index: ScopeIndex, isWanted: (name: SectionName) => boolean): string {
  // A scope on a service has no entries in some.
  const isUsed = (name: SectionName) => index[name].size > 0;
  const encoded = sectionNames
    .filter((name) => isWanted(name) && isUsed(name))
    .map((name) => {
      const fields = Object.keys(sections[name].fields);
      const entries: ReadonlyMap<string, Readonly<Record<string, unknown>>> = index[name];
      return [name, Array.from(entries, ([key, entry]) => [key, ...fields.map((field) => entry[field])])];
    });
  return JSON.stringify(Object.fromEntries(encoded));
}

function decodeSections(body: Uint8Array, index: ScopeIndex): void {
  const record = asRecord(parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()));
  if (record === undefined) throw damaged();
  for (const name of sectionNames) {
    const rows = record[name] ?? [];
    if (!Array.isArray(rows)) throw damaged();
    const { key: keyField, fields } = sections[name];
    const entries: Map<string, object> = index[name];
    for (const row of rows) {
      const key = keyField(row?.[0]);
      if (key === undefined) throw damaged();
      entries.set(key, readEntry(row, fields));
    }
  }
}

function readEntry(row: readonly unknown[], fields: EntryFields): object {
  const entry: Record<string, string | number | null> = {};
  let at = 1;
  for (const [name, field] of Object.entries(fields)) {
    const value = field(row[at++]);
    if (value === undefined) throw damaged();
    entry[name] = value;
  }
  return entry;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw damaged();
  }
}

function damaged(): UnusableIndexError {
  return new UnusableIndexError("it is damaged");
}
