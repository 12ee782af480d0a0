import type { SpecialKind } from "../../service/wire/file.ts";
import { asFields, type Fields, readString, refuse, refuseUnknown } from "../http/fields.ts";
import { readId, refuseNul } from "../processes/exec-spec.ts";
import { deviceNumber } from "../system/xattrs.ts";
import { type PlacedAttributes, readAttributeFields, readMode } from "./file-spec.ts";

/** An entry that is made before the files are copied; validated. */
export type PlacedEntry = { path: string; uid: number; gid: number } & PlacedAttributes &
  (
    | {
        type: "directory";
        /** `undefined` leaves the owner and mode of an existing directory unchanged. */
        mode: number | undefined;
      }
    | { type: "symlink"; target: string }
    | ({ type: "special"; mode: number } & SpecialKind)
  );

/** Reads the field `entries` of a request. Sorts by path, so that a directory comes before its contents. */
export function readEntries(fields: Fields): PlacedEntry[] {
  return Object.entries(fields)
    .map(([path, value]) => readEntry(path, value))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

function readEntry(path: string, value: unknown): PlacedEntry {
  const name = `entries[${JSON.stringify(path)}]`;
  const last = path.split("/").at(-1);
  if (!path.startsWith("/") || last === "" || last === "." || last === "..")
    refuse(name, "must be an absolute path without a trailing slash");
  refuseNul(name, [path]);
  const fields = asFields(value, name);
  const known = ["type", "uid", "gid", "mode", "target", "mtime", "attributes", "replaces"];
  refuseUnknown(fields, [...known, "kind", "major", "minor"], name);
  const owned = {
    path,
    uid: readId(fields, "uid") ?? 0,
    gid: readId(fields, "gid") ?? 0,
    ...readAttributeFields(fields, name),
  };
  switch (fields.type) {
    case "directory": {
      const mode = fields.mode === undefined ? undefined : readMode(fields.mode, name);
      return { ...owned, type: "directory", mode };
    }
    case "symlink": {
      const target = readString(fields, "target");
      refuseNul(name, [target]);
      return { ...owned, type: "symlink", target };
    }
    case "special":
      return { ...owned, type: "special", mode: readMode(fields.mode, name), ...readKind(fields, name) };
    default:
      refuse(`${name}.type`, "must be directory, symlink or special");
  }
}

function readKind(fields: Fields, name: string): SpecialKind {
  const { kind, major, minor } = fields;
  if (kind === "pipe") return { kind };
  if (kind !== "character-device" && kind !== "block-device")
    refuse(`${name}.kind`, "must be pipe, character-device or block-device");
  if (typeof major !== "number" || typeof minor !== "number" || deviceNumber(major, minor) === undefined)
    refuse(`${name}.major`, "and minor must be the numbers of a device");
  // Overlayfs's mark of a deleted file.
  if (kind === "character-device" && major === 0 && minor === 0)
    refuse(`${name}.major`, "and minor must not both be 0");
  return { kind, major, minor };
}
