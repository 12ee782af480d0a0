/** Values of an index that are JSON texts. They are checked when used: anyone who can write to a scope may have written them. */

import { asInteger, asNumber, asRecord, asText, type JsonRecord } from "../../service/http/json.ts";
import { isSha256 } from "../../sha256.ts";
import type { CopiedEntry, CopiedSource } from "../../store/copies.ts";
import type { RecordedValue, RecordedVariables, StepInputs } from "../cache/step-inputs.ts";
import type { MountedImage } from "../cache/step-key.ts";

/** Returns `undefined` for an invalid text. */
export function readSources(text: string | undefined): readonly CopiedSource[] | undefined {
  const list = text === undefined ? undefined : parse(text);
  return Array.isArray(list) ? allOf(list, readSource) : undefined;
}

function readSource(value: unknown): CopiedSource | undefined {
  const record = asRecord(value);
  const [path, name, type] = [asText(record?.path), asString(record?.name), record?.type];
  const entries = Array.isArray(record?.entries) ? allOf(record.entries, readEntry) : undefined;
  if (path === undefined || name === undefined || entries === undefined) return undefined;
  return type === "file" || type === "directory" ? { path, name, type, entries } : undefined;
}

function readEntry(value: unknown): CopiedEntry | undefined {
  const record = asRecord(value);
  const path = asString(record?.path);
  const [uid, gid, mode] = [natural(record?.uid), natural(record?.gid), natural(record?.mode)];
  if (record === undefined || path === undefined || uid === undefined || gid === undefined) return undefined;
  const placed = { path, uid, gid };
  switch (record.type) {
    case "symlink": {
      const target = asText(record.target);
      return target === undefined ? undefined : { ...placed, type: "symlink", target };
    }
    case "directory":
      return mode === undefined ? undefined : { ...placed, type: "directory", mode };
    case "file":
      return mode === undefined ? undefined : readFile(record, { ...placed, mode });
    default:
      return undefined;
  }
}

function readFile(
  record: JsonRecord,
  placed: { path: string; uid: number; gid: number; mode: number },
): CopiedEntry | undefined {
  const [sha256, size] = [record.sha256, natural(record.size)];
  const [mtime, original] = [asNumber(record.mtime), asString(record.original)];
  if (!isSha256(sha256) || size === undefined) return undefined;
  return {
    ...{ ...placed, type: "file", sha256, size },
    ...(mtime !== undefined && { mtime }),
    ...(original !== undefined && { original }),
  };
}

/** Returns the inputs of a step; `undefined` for an invalid text. */
export function readInputs(text: string): StepInputs | undefined {
  const record = asRecord(parse(text));
  const [parent, title, workdir] = [
    asText(record?.parent),
    asString(record?.title),
    asString(record?.workdir),
  ];
  const [args, env] = [readVariables(record?.args), readVariables(record?.env)];
  const [files, user] = [asRecord(record?.files), asString(record?.user) ?? null];
  if (parent === undefined || title === undefined || workdir === undefined) return undefined;
  if (args === undefined || env === undefined || files === undefined) return undefined;
  const described = Object.entries(files).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  const source = readStepSource(record?.source);
  const mounted = Array.isArray(record?.mounted) ? record.mounted.flatMap(readMounted) : [];
  return {
    ...{ parent, title, command: "", args, env, user, workdir, files: Object.fromEntries(described) },
    ...(source && { source }),
    ...(mounted.length > 0 && { mounted }),
  };
}

function readMounted(value: unknown): MountedImage[] {
  const [source, path] = [readStepSource(value), asText(asRecord(value)?.path)];
  return source === undefined || path === undefined ? [] : [{ ...source, path }];
}

function readStepSource(value: unknown): StepInputs["source"] {
  const record = asRecord(value);
  const [from, hash] = [asText(record?.from), asText(record?.hash)];
  return from === undefined || hash === undefined ? undefined : { from, hash };
}

function readVariables(value: unknown): RecordedVariables | undefined {
  const record = asRecord(value);
  return record && Object.fromEntries(Object.entries(record).map(([name, one]) => [name, readValue(one)]));
}

function readValue(value: unknown): RecordedValue | null {
  const record = asRecord(value);
  if (record === undefined) return null;
  const text = asString(record.text);
  return text === undefined ? { withheld: "" } : { text };
}

function natural(value: unknown): number | undefined {
  const number = asInteger(value);
  return number !== undefined && number >= 0 ? number : undefined;
}

function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function allOf<Item>(
  list: readonly unknown[],
  read: (value: unknown) => Item | undefined,
): Item[] | undefined {
  const items = list.map(read);
  return items.every((item) => item !== undefined) ? items : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
