/** `--set TARGET.FIELD=VALUE`, as in docker buildx bake. */
import { usageError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import type { FileLocation } from "./file-location.ts";
import {
  mergeFields,
  normalizeFields,
  readField,
  sortedMap,
  type Target,
  type TargetFields,
} from "./target.ts";
import { readTargetEntries, type TargetEntry } from "./target-entries.ts";
import { matchesName } from "./target-names.ts";

/** Changes of targets, by name. */
export type Overrides = ReadonlyMap<string, readonly Override[]>;

interface Override {
  /** The override as given, for messages. */
  text: string;
  field: string;
  /** What follows the field's dot. */
  key: string | undefined;
  /** True for `+=`. */
  appends: boolean;
  values: string[];
}

/** Fields whose values are collected when `--set` is repeated, with their names in a bake file. */
const collected: Readonly<Record<string, keyof TargetFields>> = {
  output: "output",
  "cache-to": "cache-to",
  "cache-from": "cache-from",
  tags: "tags",
  platform: "platforms",
  secrets: "secret",
  ssh: "ssh",
  attest: "attest",
  entitlements: "entitlements",
  annotations: "annotations",
  "no-cache-filter": "no-cache-filter",
  ulimits: "ulimits",
};
/** Fields to which each value is added, with `=` as well. */
const alwaysAdded: ReadonlySet<string> = new Set(["entitlements", "annotations", "attest"]);
const mapped: ReadonlySet<string> = new Set(["args", "contexts", "labels", "extra-hosts"]);
const single: ReadonlySet<string> = new Set([
  ...["context", "dockerfile", "target", "call", "no-cache", "pull", "push", "load", "shm-size", "network"],
]);
const known = [...Object.keys(collected), ...mapped, ...single, "secret"];

/** Reads `--set`. Throws a usage BoughError for an unknown target or field. */
export function readOverrides(
  given: readonly string[],
  targets: readonly Target[],
  valueOf: (name: string) => string | undefined,
): Overrides {
  const all = new Map<string, Override[]>();
  for (const text of given) {
    const { pattern, field, key, appends, value } = parseOverride(text);
    const names = namesMatching(pattern, targets, text);
    // As in buildx, `--set app.args.NAME` takes the value from the environment.
    const found = value ?? (field === "args" ? valueOf(key ?? "") : undefined);
    if (found === undefined && field === "args") continue;
    if (found === undefined) throw refuse(text, "a value is missing: TARGET.FIELD=VALUE");
    for (const name of new Set(names)) {
      const own = all.getOrInsert(name, []);
      const earlier = own.find(
        (each) => each.field === field && each.key === key && Object.hasOwn(collected, field),
      );
      if (earlier === undefined) own.push({ text, field, key, appends, values: [found] });
      else {
        earlier.values.push(found);
        earlier.appends = appends;
      }
    }
  }
  return all;
}

/** Parses `TARGET.FIELD.KEY=VALUE` and `TARGET.FIELD+=VALUE`. */
function parseOverride(text: string) {
  const [, path = "", plus = "", value] = /^([^=]*?)(\+?)(?:=(.*))?$/s.exec(text) ?? [];
  const [, pattern = "", field = "", key] = /^([^.]*)\.([^.]*)(?:\.(.*))?$/s.exec(path) ?? [];
  if (field === "")
    throw refuse(text, "TARGET.FIELD=VALUE is required, as in app.args.VERSION=1 or *.platform=linux/amd64");
  if (!known.includes(field)) {
    const meant = nearest(field, known);
    throw refuse(text, `unknown field ${JSON.stringify(field)}`, meant && `Did you mean ${meant}?`);
  }
  const needsKey = mapped.has(field) || field === "secret";
  if (needsKey !== (key !== undefined && key !== ""))
    throw refuse(
      text,
      needsKey ? `${field} needs a name: TARGET.${field}.NAME=VALUE` : `${field} has no ${key}`,
    );
  if (plus !== "" && !Object.hasOwn(collected, field))
    throw refuse(text, `${field} is not a list: += cannot be used`);
  return { pattern, field, key, appends: plus !== "", value };
}

/** Returns the names of the targets that match a pattern. Throws if there are none. */
function namesMatching(pattern: string, targets: readonly Target[], text: string): string[] {
  const all = targets.map(({ name }) => name);
  const names = all.filter((name) => name === pattern || matchesName(pattern, name));
  if (names.length > 0) return names;
  const meant = nearest(pattern, all);
  throw refuse(
    text,
    `could not find any target matching ${JSON.stringify(pattern)}`,
    meant && `Did you mean ${meant}?`,
  );
}

/** Applies the changes of one target. */
export function applyOverrides(fields: TargetFields, overrides: readonly Override[]): TargetFields {
  let changed = fields;
  // `push` and `load` depend on the outputs.
  const order = (override: Override) => Number(["push", "load"].includes(override.field));
  for (const override of [...overrides].sort((one, other) => order(one) - order(other)))
    changed = apply(changed, override);
  return normalizeFields(changed);
}

function apply(fields: TargetFields, { text, field, key, appends, values }: Override): TargetFields {
  const location: FileLocation = { file: `--set ${text}`, path: [] };
  const value = values.at(-1) ?? "";
  const list = collected[field];
  if (list !== undefined) {
    const given = readField(list, values, location);
    if (!appends && !alwaysAdded.has(field)) return { ...fields, ...given };
    const before = (fields[list] ?? []) as readonly unknown[];
    return { ...fields, [list]: [...before, ...((given[list] ?? []) as readonly unknown[])] };
  }
  if (key !== undefined && mapped.has(field)) return mergeFields(fields, { [field]: { [key]: value } });
  if (field === "secret") return withSecret(fields, key ?? "", value, text);
  if (field === "push" || field === "load") {
    const isOn = readField("pull", value, location).pull === true;
    const output = field === "push" ? pushed(fields.output ?? [], isOn) : loaded(fields.output ?? [], isOn);
    return { ...fields, output };
  }
  return { ...fields, ...readField(field as keyof TargetFields, value, location) };
}

function withSecret(fields: TargetFields, id: string, value: string, text: string): TargetFields {
  const [next = {}] = readTargetEntries("secret", [value], { file: `--set ${text}`, path: [] });
  if (next.id !== undefined && next.id !== id)
    throw refuse(text, `the value is of another secret: ${next.id}`);
  if (fields.secret?.some((entry) => entry.id === id) !== true)
    throw refuse(text, `the target has no secret ${JSON.stringify(id)}`);
  return { ...fields, secret: fields.secret.map((entry) => (entry.id === id ? { id, ...next } : entry)) };
}

/** Returns the outputs as `push=true` or `push=false` changes them. */
function pushed(outputs: readonly TargetEntry[], isOn: boolean): TargetEntry[] {
  const changed = outputs
    .filter(({ type }) => isOn || type !== "registry")
    .map((entry) => (entry.type === "image" ? sortedMap({ ...entry, push: String(isOn) }) : entry));
  const isAdded = isOn && outputs.every(({ type }) => type === "docker");
  return isAdded ? [...changed, { push: "true", type: "image" }] : changed;
}

/** Returns the outputs with one for docker, as `load=true` adds it unless an output writes files. */
function loaded(outputs: readonly TargetEntry[], isOn: boolean): TargetEntry[] {
  const isKept =
    !isOn ||
    outputs.some(({ type, dest }) =>
      type === "docker" ? dest === undefined : !["image", "registry", "oci"].includes(String(type)),
    );
  return isKept ? [...outputs] : [...outputs, { type: "docker" }];
}

function refuse(text: string, message: string, hint?: string) {
  return usageError(
    `--set ${text}: ${message}`,
    hint ?? "As in --set app.args.VERSION=1.2 or --set '*.tags+=app:dev'.",
  );
}
