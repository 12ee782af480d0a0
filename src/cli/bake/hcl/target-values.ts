import { listOf, mapOf, stringType, type Type } from "../../../hcl/values/types.ts";
import {
  boolValue,
  type HclValue,
  listValue,
  mapValue,
  nullOf,
  objectValue,
  stringList,
  stringValue,
} from "../../../hcl/values/value.ts";
import { kindOfField, type TargetFields } from "../target.ts";
import type { TargetEntry } from "../target-entries.ts";

/** Returns the value that expressions get for a target's field, as in `target.app.tags`. An absent field is null, or an empty list. */
export function valueOfField(name: keyof TargetFields, fields: TargetFields): HclValue {
  const given = fields[name];
  switch (kindOfField(name)) {
    case "text":
      return typeof given === "string"
        ? stringValue(given)
        : name === "description"
          ? stringValue("")
          : nullOf(stringType);
    case "flag":
      return typeof given === "boolean" ? boolValue(given) : nullOf({ kind: "bool" });
    case "list":
      return given === undefined ? nullOf(listOf(stringType)) : stringList(given as readonly string[]);
    case "map":
      return given === undefined
        ? nullOf(mapOf(stringType))
        : mapValue(
            stringType,
            Object.entries(given).map(([key, text]) => [key, stringValue(String(text))]),
          );
    case "entries": {
      const entries = (given ?? []) as readonly TargetEntry[];
      return listValue(
        entryType(name),
        entries.map((entry) => entryValue(name, entry)),
      );
    }
  }
}

function entryType(name: keyof TargetFields): Type {
  if (name !== "secret" && name !== "ssh") return mapOf(stringType);
  const attributes: [string, Type][] =
    name === "ssh"
      ? [
          ["id", stringType],
          ["paths", listOf(stringType)],
        ]
      : [
          ["env", stringType],
          ["id", stringType],
          ["src", stringType],
        ];
  return { kind: "object", attributes: new Map(attributes) };
}

function entryValue(name: keyof TargetFields, entry: TargetEntry): HclValue {
  const text = (key: string) => stringValue(String(entry[key] ?? ""));
  if (name === "ssh") {
    const paths = Array.isArray(entry.paths) ? entry.paths.map(String) : [];
    return objectValue([
      ["id", text("id")],
      ["paths", stringList(paths)],
    ]);
  }
  if (name === "secret")
    return objectValue([
      ["id", text("id")],
      ["src", text("src")],
      ["env", text("env")],
    ]);
  const texts = Object.entries(entry).map(([key, value]): [string, HclValue] => [
    key,
    stringValue(String(value)),
  ]);
  return mapValue(stringType, name === "output" ? [["dest", stringValue("")], ...texts] : texts);
}
