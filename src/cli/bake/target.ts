import { parseGoBoolean } from "../../go/boolean.ts";
import { type FileLocation, locationError } from "./file-location.ts";
import {
  readTargetEntries,
  type TargetAgent,
  type TargetEntry,
  type TargetSecret,
} from "./target-entries.ts";

/** A target of a bake file or a service of a compose file, as one file has it. A field that is not given is absent. */
export interface Target {
  name: string;
  /** The file, and the line if it is known, for messages. */
  origin: string;
  inherits: readonly string[];
  fields: TargetFields;
}

export interface Group {
  name: string;
  targets: readonly string[];
  description?: string | undefined;
}

/** The targets, groups and variables that a set of files defines. */
export interface BakeDefinition {
  groups: readonly Group[];
  targets: readonly Target[];
  variables: readonly ListedVariable[];
  /** The locations of targets whose matrix has no rows, by name. */
  emptyMatrices?: ReadonlyMap<string, string>;
}

/** A variable as `--list=variables` shows it. */
export interface ListedVariable {
  name: string;
  type?: string;
  description?: string;
  value: string | null;
}

type TextMap = Readonly<Record<string, string>>;

/** The fields of a target, with the names and in the order of `docker buildx bake --print`. */
export interface TargetFields {
  description?: string;
  annotations?: readonly string[];
  attest?: readonly TargetEntry[];
  context?: string;
  contexts?: TextMap;
  dockerfile?: string;
  "dockerfile-inline"?: string;
  args?: TextMap;
  labels?: TextMap;
  tags?: readonly string[];
  "cache-from"?: readonly TargetEntry[];
  "cache-to"?: readonly TargetEntry[];
  target?: string;
  secret?: readonly TargetSecret[];
  ssh?: readonly TargetAgent[];
  platforms?: readonly string[];
  output?: readonly TargetEntry[];
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
  /** How values of several files, or of `inherits`, are merged. With `key`, entries are appended, and replace those with the same key. */
  merges: "replace" | "append" | { key: string };
}

const text: FieldRule = { kind: "text", merges: "replace" };
const flag: FieldRule = { kind: "flag", merges: "replace" };
const list: FieldRule = { kind: "list", merges: "replace" };
const lists: FieldRule = { kind: "list", merges: "append" };
const map: FieldRule = { kind: "map", merges: "append" };
const byId: FieldRule = { kind: "entries", merges: { key: "id" } };

const rules: Readonly<Record<keyof TargetFields, FieldRule>> = {
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

export const fieldNames = Object.keys(rules) as (keyof TargetFields)[];

export function kindOfField(name: keyof TargetFields): Kind {
  return rules[name].kind;
}

export function isFieldName(name: string): name is keyof TargetFields {
  return Object.hasOwn(rules, name);
}

/** Reads a field's value from JSON or YAML. `null` means that it is not given. Throws a usage BoughError for another kind of value. */
export function readField(name: keyof TargetFields, value: unknown, location: FileLocation): TargetFields {
  if (value === null || value === undefined) return {};
  const { kind } = rules[name];
  switch (kind) {
    case "text":
      return { [name]: readText(value, location) };
    case "flag":
      return { [name]: readFlag(value, location) };
    case "list":
      return { [name]: readList(value, location) };
    case "map":
      return { [name]: readMap(value, location) };
    case "entries":
      return { [name]: readTargetEntries(name, requireArray(value, location), location) };
  }
}

/** Returns the fields of `later` over those of `earlier`. */
export function mergeFields(earlier: TargetFields, later: TargetFields): TargetFields {
  const merged: Record<string, unknown> = { ...earlier };
  for (const name of fieldNames) {
    const [before, after] = [earlier[name], later[name]];
    if (after === undefined) continue;
    const { kind, merges } = rules[name];
    if (before === undefined || merges === "replace") merged[name] = after;
    else if (kind === "map") merged[name] = { ...(before as TextMap), ...(after as TextMap) };
    else merged[name] = [...(before as readonly unknown[]), ...(after as readonly unknown[])];
  }
  return normalizeFields(merged as TargetFields);
}

/** Removes repeated values. A later entry with the same key takes the place of the earlier one. */
export function normalizeFields(fields: TargetFields): TargetFields {
  const normal: Record<string, unknown> = {};
  for (const name of fieldNames) {
    const value = fields[name];
    if (value === undefined) continue;
    const { kind, merges } = rules[name];
    if (kind === "list")
      normal[name] = [...new Set(value as readonly string[])].filter((each) => each !== "");
    else if (kind === "entries") {
      const keyOf = (entry: TargetEntry) =>
        typeof merges === "object" ? String(entry[merges.key]) : JSON.stringify(Object.entries(entry).sort());
      normal[name] = [
        ...new Map((value as readonly TargetEntry[]).map((entry) => [keyOf(entry), entry])).values(),
      ];
    } else normal[name] = value;
  }
  return normal as TargetFields;
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
export function printableFields(fields: TargetFields): Record<string, unknown> {
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
export function readText(value: unknown, location: FileLocation): string {
  if (typeof value === "string") return value;
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    throw locationError(location, "the number is too large to be read as it is written", "Put it in quotes.");
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  throw locationError(location, `a string is required, not ${describe(value)}`);
}

export function readFlag(value: unknown, location: FileLocation): boolean {
  if (typeof value === "boolean") return value;
  const parsed = typeof value === "string" ? parseGoBoolean(value) : undefined;
  if (parsed !== undefined) return parsed;
  throw locationError(location, `true or false is required, not ${describe(value)}`);
}

export function readList(value: unknown, location: FileLocation): string[] {
  return requireArray(value, location).map((each, index) =>
    readText(each, { ...location, path: [...location.path, String(index)] }),
  );
}

/** Reads a map of texts. A key whose value is `null` is not given. */
function readMap(value: unknown, location: FileLocation): Record<string, string> {
  return Object.fromEntries(
    Object.entries(requireMap(value, location)).flatMap(([key, each]) =>
      each === null ? [] : [[key, readText(each, { ...location, path: [...location.path, key] })]],
    ),
  );
}

/** The maximum number of values: more than any project has, and fewer than a few lines of aliases can expand to. */
const maxValues = 1_000_000;
const maxDepth = 100;

/** Throws for a file that refers to itself, is nested too deeply, or has more values than can be worked with. */
export function requireFinite(value: unknown, location: FileLocation): void {
  let values = 0;
  const visit = (each: unknown, depth: number) => {
    values += 1;
    if (depth > maxDepth || values > maxValues)
      throw locationError(
        location,
        "it is nested too deeply, or too large",
        "An alias must not be part of what it stands for.",
      );
    if (typeof each === "object" && each !== null)
      for (const part of Object.values(each)) visit(part, depth + 1);
  };
  visit(value, 0);
}

export function requireMap(value: unknown, location: FileLocation): Record<string, unknown> {
  if (isMap(value)) return value;
  throw locationError(location, `a map is required, not ${describe(value)}`);
}

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function requireArray(value: unknown, location: FileLocation): unknown[] {
  if (Array.isArray(value)) return value;
  throw locationError(location, `a list is required, not ${describe(value)}`);
}

/** Names the kind of a value. It quotes no text, since a file that is not a bake file may hold a secret. */
function describe(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return "a string";
  return isMap(value) ? "a map" : JSON.stringify(value);
}
