/** Targets as JSON lines: an object a line, with the fields of a target, its `name`, and what it `inherits`. */
import { usageError } from "../../../errors.ts";
import { nearest } from "../../../suggest.ts";
import { byDefault, isTargetName } from "../names.ts";
import { type BakeText, below, type Place, placeError } from "../place.ts";
import {
  type Definition,
  type Fields,
  fieldNames,
  isFieldName,
  isMap,
  normalize,
  readField,
  readList,
  type Target,
} from "../target.ts";

/** Fields of a line besides those of a target. */
const ownFields = ["name", "inherits"];

/** True for a text of such lines: each is JSON by itself, and not a bake file or a compose file. */
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

/** Reads the targets of all files. They are the group `default`, in the place of another one. */
export function readJsonLines(files: readonly BakeText[], warn: (message: string) => void): Definition {
  const targets = new Map<string, Target>();
  const warned = new Set<string>();
  for (const { file, text } of files) {
    let number = 0;
    for (const line of text.replace(/^\uFEFF/, "").split("\n")) {
      number += 1;
      if (line.trim() === "") continue;
      const place: Place = { file: `${file}:${number}`, path: [] };
      const target = readTarget(line, place, (field, hint) => {
        if (!warned.has(field)) warn(`${place.file}: unknown field ${field}: it is ignored${hint}`);
        warned.add(field);
      });
      const other = targets.get(target.name);
      if (other !== undefined) throw placeError(place, `${other.origin} has a target ${target.name}, too`);
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
    groups: [{ name: byDefault, targets: [...targets.keys()] }],
    variables: [],
  };
}

function readTarget(line: string, place: Place, onUnknown: (field: string, hint: string) => void): Target {
  const value = parse(line, place);
  if (!isMap(value)) throw placeError(place, "a line must be an object");
  const { name, inherits, ...given } = value;
  if (typeof name !== "string" || !isTargetName(name))
    throw placeError(
      place,
      `name must be a text of letters, digits, _ and -, not ${JSON.stringify(name) ?? "missing"}`,
    );
  const named = { ...place, path: [`target ${name}`] };
  let fields: Fields = {};
  for (const [field, each] of Object.entries(given)) {
    if (isFieldName(field)) fields = { ...fields, ...readField(field, each, below(named, field)) };
    else {
      const meant = nearest(field, [...ownFields, ...fieldNames]);
      onUnknown(field, meant === undefined ? "" : ` (did you mean ${meant}?)`);
    }
  }
  return {
    ...{ name, origin: place.file, fields: normalize(fields) },
    inherits:
      typeof inherits === "string"
        ? [inherits]
        : inherits === undefined
          ? []
          : readList(inherits, below(named, "inherits")),
  };
}

function parse(line: string, place: Place): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw placeError(place, "the line is not JSON", "Each line is an object by itself.", error);
  }
}
