import { asFields, type Fields, readString, refuse, refuseUnknown } from "../http/fields.ts";
import { readId, refuseNul } from "../processes/exec-spec.ts";
import { readMode } from "./file-spec.ts";

/** A directory or link that is made before the files are copied; validated. */
export type PlacedEntry = { path: string; uid: number; gid: number } & (
  | {
      type: "directory";
      /** `undefined` leaves an existing directory unchanged. */
      mode: number | undefined;
    }
  | { type: "symlink"; target: string }
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
  refuseUnknown(fields, ["type", "uid", "gid", "mode", "target"], name);
  const owned = { path, uid: readId(fields, "uid") ?? 0, gid: readId(fields, "gid") ?? 0 };
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
    default:
      refuse(`${name}.type`, "must be directory or symlink");
  }
}
