/** Reads targets as JSON lines: each line is an object with the fields of a target, its `name`, and what it `inherits`. */
import { usageError } from "../../../errors.ts";
import { nearest } from "../../../suggest.ts";
import { type BakeText, below, type FileLocation, locationError } from "../file-location.ts";
import {
  type BakeDefinition,
  fieldNames,
  isFieldName,
  isMap,
  normalizeFields,
  readField,
  readList,
  type Target,
  type TargetFields,
} from "../target.ts";
import { defaultName, isTargetName } from "../target-names.ts";

/** The fields of a line that are not fields of a target. */
const ownFields = ["name", "inherits"];

/** True if the first line is such an object, rather than a bake file or a compose file in JSON. */
export function isJsonLines(text: string): boolean {
  const [first = ""] = /\S.*/.exec(text) ?? [];
  try {
    const value: unknown = JSON.parse(first);
    const others = ["target", "group", "variable", "function", "services"];
    return isMap(value) && typeof value.name === "string" && !others.some((key) => Object.hasOwn(value, key));
  } catch {
    return false;
  }
}

/** Reads the targets of all files, all of which are in the group `default`. */
export function readJsonLines(files: readonly BakeText[], warn: (message: string) => void): BakeDefinition {
  const targets = new Map<string, Target>();
  const warned = new Set<string>();
  for (const { file, text } of files) {
    let number = 0;
    for (const line of text.replace(/^\uFEFF/, "").split("\n")) {
      number += 1;
      if (line.trim() === "") continue;
      const location: FileLocation = { file: `${file}:${number}`, path: [] };
      const target = readTarget(line, location, (field, hint) => {
        if (!warned.has(field)) warn(`${location.file}: unknown field ${field}: it is ignored${hint}`);
        warned.add(field);
      });
      const other = targets.get(target.name);
      if (other !== undefined)
        throw locationError(location, `${other.origin} has a target ${target.name}, too`);
      targets.set(target.name, target);
    }
  }
  if (targets.size === 0)
    throw usageError(
      `${files.map(({ file }) => file).join(", ")}: there is no target in it`,
      'Each line is a target, as in {"name": "app", "context": ".", "tags": ["app:dev"]}',
    );
  return {
    targets: [...targets.values()],
    groups: [{ name: defaultName, targets: [...targets.keys()] }],
    variables: [],
  };
}

function readTarget(
  line: string,
  location: FileLocation,
  onUnknown: (field: string, hint: string) => void,
): Target {
  const value = parse(line, location);
  if (!isMap(value)) throw locationError(location, "a line must be an object");
  const { name, inherits, ...given } = value;
  if (typeof name !== "string" || !isTargetName(name))
    throw locationError(
      location,
      `name must be a text of letters, digits, _ and -, not ${JSON.stringify(name) ?? "missing"}`,
    );
  const named = { ...location, path: [`target ${name}`] };
  let fields: TargetFields = {};
  for (const [field, each] of Object.entries(given)) {
    if (isFieldName(field)) fields = { ...fields, ...readField(field, each, below(named, field)) };
    else {
      const meant = nearest(field, [...ownFields, ...fieldNames]);
      onUnknown(field, meant === undefined ? "" : ` (did you mean ${meant}?)`);
    }
  }
  return {
    ...{ name, origin: location.file, fields: normalizeFields(fields) },
    inherits:
      typeof inherits === "string"
        ? [inherits]
        : inherits === undefined
          ? []
          : readList(inherits, below(named, "inherits")),
  };
}

function parse(line: string, location: FileLocation): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw locationError(location, "the line is not JSON", "Each line is an object by itself.", error);
  }
}
