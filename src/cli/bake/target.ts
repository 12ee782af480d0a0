import { parseGoBoolean } from "../../go/boolean.ts";
import { type Entry, readEntries, type TargetAgent, type TargetSecret } from "./entries.ts";

import { type Place, placeError } from "./place.ts";

/** A target of a bake file or a service of a compose file, as one file has it. A field that is not given is absent. */
export interface Target {
  name: string;
  /** The file, and the line if it is known, for messages. */
  origin: string;
  inherits: readonly string[];
  fields: Fields;
}

export interface Group {
  name: string;
  targets: readonly string[];
  description?: string | undefined;
}

/** What a set of files defines. */
export interface Definition {
  groups: readonly Group[];
  targets: readonly Target[];
  variables: readonly ShownVariable[];
  /** The places of targets with a matrix that makes none of them, by name. */
  emptyMatrices?: ReadonlyMap<string, string>;
}

/** A variable as `--list=variables` shows it. */
export interface ShownVariable {
  name: string;
  type?: string;
  description?: string;
  value: string | null;
}

type TextMap = Readonly<Record<string, string>>;

/** The fields of a target, with the names and in the order of `docker buildx bake --print`. */
export interface Fields {
  description?: string;
  annotations?: readonly string[];
  attest?: readonly Entry[];
  context?: string;
  contexts?: TextMap;
  dockerfile?: string;
  "dockerfile-inline"?: string;
  args?: TextMap;
  labels?: TextMap;
  tags?: readonly string[];
  "cache-from"?: readonly Entry[];
  "cache-to"?: readonly Entry[];
  target?: string;
  secret?: readonly TargetSecret[];
  ssh?: readonly TargetAgent[];
  platforms?: readonly string[];
  output?: readonly Entry[];
  pull?: boolean;
  "no-cache"?: boolean;
  network?: string;
  "no-cache-filter"?: readonly string[];
  "shm-size"?: string;
  ulimits?: readonly string[];
  call?: string;
  entitlements?: readonly string[];
  "extra-hosts"?: TextMap;
}

type Kind = "text" | "flag" | "list" | "map" | "entries";

interface FieldRule {
  kind: Kind;
  /** What several files, or `inherits`, make of two values: the later one, or both. An entry replaces one with the same key. */
  merges: "replace" | "append" | { key: string };
}

const text: FieldRule = { kind: "text", merges: "replace" };
const flag: FieldRule = { kind: "flag", merges: "replace" };
const list: FieldRule = { kind: "list", merges: "replace" };
const lists: FieldRule = { kind: "list", merges: "append" };
const map: FieldRule = { kind: "map", merges: "append" };
const byId: FieldRule = { kind: "entries", merges: { key: "id" } };

const rules: Readonly<Record<keyof Fields, FieldRule>> = {
  description: text,
  annotations: lists,
  attest: { kind: "entries", merges: { key: "type" } },
  context: text,
  contexts: map,
  dockerfile: text,
  "dockerfile-inline": text,
  args: map,
  labels: map,
  tags: list,
  "cache-from": { kind: "entries", merges: "append" },
  "cache-to": { kind: "entries", merges: "replace" },
  target: text,
  secret: byId,
  ssh: byId,
  platforms: list,
  output: { kind: "entries", merges: "replace" },
  pull: flag,
  "no-cache": flag,
  network: text,
  "no-cache-filter": lists,
  "shm-size": text,
  ulimits: lists,
  call: text,
  entitlements: lists,
  "extra-hosts": map,
};

export const fieldNames = Object.keys(rules) as (keyof Fields)[];

export function kindOfField(name: keyof Fields): Kind {
  return rules[name].kind;
}

export function isFieldName(name: string): name is keyof Fields {
  return Object.hasOwn(rules, name);
}

/** Reads a field's value from JSON or YAML. `null` means that it is not given. Throws a usage BoughError for another kind of value. */
export function readField(name: keyof Fields, value: unknown, place: Place): Fields {
  if (value === null || value === undefined) return {};
  const { kind } = rules[name];
  switch (kind) {
    case "text":
      return { [name]: readText(value, place) };
    case "flag":
      return { [name]: readFlag(value, place) };
    case "list":
      return { [name]: readList(value, place) };
    case "map":
      return { [name]: readMap(value, place) };
    case "entries":
      return { [name]: readEntries(name, requireArray(value, place), place) };
  }
}

/** Returns the fields of `later` over those of `earlier`. */
export function mergeFields(earlier: Fields, later: Fields): Fields {
  const merged: Record<string, unknown> = { ...earlier };
  for (const name of fieldNames) {
    const [before, after] = [earlier[name], later[name]];
    if (after === undefined) continue;
    const { kind, merges } = rules[name];
    if (before === undefined || merges === "replace") merged[name] = after;
    else if (kind === "map") merged[name] = { ...(before as TextMap), ...(after as TextMap) };
    else merged[name] = [...(before as readonly unknown[]), ...(after as readonly unknown[])];
  }
  return normalize(merged as Fields);
}

/** Removes what is given twice: of entries with the same key the earlier one, which the later one replaces in its place. */
export function normalize(fields: Fields): Fields {
  const normal: Record<string, unknown> = {};
  for (const name of fieldNames) {
    const value = fields[name];
    if (value === undefined) continue;
    const { kind, merges } = rules[name];
    if (kind === "list")
      normal[name] = [...new Set(value as readonly string[])].filter((each) => each !== "");
    else if (kind === "entries") {
      const keyOf = (entry: Entry) =>
        typeof merges === "object" ? String(entry[merges.key]) : JSON.stringify(Object.entries(entry).sort());
      normal[name] = [...new Map((value as readonly Entry[]).map((entry) => [keyOf(entry), entry])).values()];
    } else normal[name] = value;
  }
  return normal as Fields;
}

/** Fields whose values may contain `$`: `--print` escapes what a bake file would replace. */
const escaped: ReadonlySet<string> = new Set([
  "annotations",
  "dockerfile-inline",
  "labels",
  "args",
  "extra-hosts",
]);

/** Returns a target's fields as `--print` has them: in their order, without empty ones, maps sorted. */
export function printableFields(fields: Fields): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const name of fieldNames) {
    const value = fields[name];
    if (value === undefined || (name === "description" && value === "")) continue;
    if (typeof value === "object" && Object.keys(value).length === 0) continue;
    const { kind } = rules[name];
    const plain = kind === "map" ? sortedMap(value as TextMap) : value;
    shown[name] = escaped.has(name) ? escapeTemplates(plain) : plain;
  }
  return shown;
}

function escapeTemplates(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll("${", "$$${").replaceAll("%{", "%%{");
  if (Array.isArray(value)) return value.map(escapeTemplates);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, escapeTemplates(each)]));
}

export function sortedMap<Value>(map: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(map).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Reads a text. Numbers and booleans are texts, too, as in HCL and compose files. */
export function readText(value: unknown, place: Place): string {
  if (typeof value === "string") return value;
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    throw placeError(place, "the number is too large to be read as it is written", "Put it in quotes.");
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  throw placeError(place, `a string is required, not ${describe(value)}`);
}

export function readFlag(value: unknown, place: Place): boolean {
  if (typeof value === "boolean") return value;
  const parsed = typeof value === "string" ? parseGoBoolean(value) : undefined;
  if (parsed !== undefined) return parsed;
  throw placeError(place, `true or false is required, not ${describe(value)}`);
}

export function readList(value: unknown, place: Place): string[] {
  return requireArray(value, place).map((each, index) =>
    readText(each, { ...place, path: [...place.path, String(index)] }),
  );
}

/** Reads a map of texts. A key whose value is `null` is not given. */
function readMap(value: unknown, place: Place): Record<string, string> {
  return Object.fromEntries(
    Object.entries(requireMap(value, place)).flatMap(([key, each]) =>
      each === null ? [] : [[key, readText(each, { ...place, path: [...place.path, key] })]],
    ),
  );
}

/** More than any project has, and less than what a few lines of aliases can stand for. */
const maxValues = 1_000_000;
const maxDepth = 100;

/** Throws for a file that refers to itself, is nested too deeply, or has more values than can be worked with. */
export function requireFinite(value: unknown, place: Place): void {
  let values = 0;
  const visit = (each: unknown, depth: number) => {
    values += 1;
    if (depth > maxDepth || values > maxValues)
      throw placeError(
        place,
        "it is nested too deeply, or too large",
        "An alias must not be part of what it stands for.",
      );
    if (typeof each === "object" && each !== null)
      for (const part of Object.values(each)) visit(part, depth + 1);
  };
  visit(value, 0);
}

export function requireMap(value: unknown, place: Place): Record<string, unknown> {
  if (isMap(value)) return value;
  throw placeError(place, `a map is required, not ${describe(value)}`);
}

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function requireArray(value: unknown, place: Place): unknown[] {
  if (Array.isArray(value)) return value;
  throw placeError(place, `a list is required, not ${describe(value)}`);
}

/** Says what kind of value it is. A text may be all that a file has, which may be no bake file but a key. */
function describe(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return "a string";
  return isMap(value) ? "a map" : JSON.stringify(value);
}
