/**
 * Finds values in a response by tables of keys and of the objects that they may be in. The specification leaves the bodies of
 * responses open, so each value has several names, in an order of preference.
 */
import { asId, asRecord, type JsonRecord } from "../../http/json.ts";

/** Keys of one value and the paths of the objects that may have it. The first place that has one of the keys counts. */
export interface Sought {
  names: readonly string[];
  /** Keys joined by dots, at most three. An empty path is the response itself. */
  places: readonly string[];
}

/** Returns a response's object. Of an array it is the first item. */
export function objectIn(body: unknown): JsonRecord | undefined {
  return asRecord(Array.isArray(body) ? body[0] : body);
}

/** Returns the value of a key in any spelling: `exit_code`, `exitCode`, `ExitCode` and `exit-code` are one key. */
export function fieldOf(record: JsonRecord, name: string): unknown {
  return record[name] ?? spellingsOf(record).get(plainName(name));
}

/** True if a record has a key in any spelling, whatever its value. */
export function hasField(record: JsonRecord, name: string): boolean {
  return name in record || spellingsOf(record).has(plainName(name));
}

/** Returns the objects at the given paths, in their order, each once. */
export function placesIn(body: unknown, paths: readonly string[]): JsonRecord[] {
  const record = objectIn(body);
  if (record === undefined) return [];
  const found = new Set<JsonRecord>();
  for (const path of paths) {
    const place = placeAt(record, path);
    if (place !== undefined) found.add(place);
  }
  return [...found];
}

/** Returns the values that `read` accepts, the preferred one first. */
export function findAll<T>(
  body: unknown,
  table: readonly Sought[],
  read: (value: unknown) => T | undefined,
): T[] {
  const found: T[] = [];
  for (const { names, places } of table) {
    for (const place of placesIn(body, places)) {
      for (const name of names) {
        const value = read(fieldOf(place, name));
        if (value !== undefined && !found.includes(value)) found.push(value);
      }
    }
  }
  return found;
}

/** Returns all combinations of two lists of paths, those of the first `outer` path first. */
export function nested(outer: readonly string[], inner: readonly string[]): string[] {
  return outer.flatMap((one) => inner.map((other) => [one, other].filter((path) => path !== "").join(".")));
}

/** Reads an id: text, or a number. */
export function readId(value: unknown): string | undefined {
  return asId(Number.isSafeInteger(value) ? String(value) : value);
}

/** Reads an id, or an object that has one under one of these keys. */
export function readIdOf(names: readonly string[]): (value: unknown) => string | undefined {
  return (value) => {
    const record = asRecord(value);
    if (record === undefined) return readId(value);
    for (const name of names) {
      const id = readId(fieldOf(record, name));
      if (id !== undefined) return id;
    }
    return undefined;
  };
}

function placeAt(record: JsonRecord, path: string): JsonRecord | undefined {
  let place: JsonRecord | undefined = record;
  if (path === "") return place;
  for (const name of path.split(".")) {
    if (place === undefined) return undefined;
    place = objectIn(fieldOf(place, name));
  }
  return place;
}

const spellings = new WeakMap<JsonRecord, ReadonlyMap<string, unknown>>();

function spellingsOf(record: JsonRecord): ReadonlyMap<string, unknown> {
  let known = spellings.get(record);
  if (known === undefined) {
    known = new Map(Object.entries(record).map(([key, value]) => [plainName(key), value]));
    spellings.set(record, known);
  }
  return known;
}

const plainNames = new Map<string, string>();
/** Keys of responses are not remembered without end. */
const maxPlainNames = 1000;

function plainName(name: string): string {
  let plain = plainNames.get(name);
  if (plain === undefined) {
    plain = name.replaceAll(/[_-]/g, "").toLowerCase();
    if (plainNames.size < maxPlainNames) plainNames.set(name, plain);
  }
  return plain;
}
