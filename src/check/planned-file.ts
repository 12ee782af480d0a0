import { posix } from "node:path";
import type { PlannedItem } from "../builder/copy/planned-items.ts";
import { redactUrl } from "../builder/remote-files/source-url.ts";

/** One file, link or empty directory that a COPY or ADD brings. What only the image could tell is `undefined`. */
export interface PlannedFile {
  /** The instruction's line. */
  line: number;
  type: "file" | "directory" | "symlink";
  /** A path in the build context, a URL, or `<<NAME`. */
  source: string;
  /** Absolute, in the image. `undefined`: it depends on a variable of the image. */
  destination: string | undefined;
  /**
   * What the last word of the instruction names. `unknown`: the image has a say in it. It may have a directory there:
   * then that is `destination`, and the file goes into it under its own name. Or it may have a WORKDIR of its own, from
   * which a relative path counts.
   */
  destinationIs: "file" | "directory" | "unknown";
  /** Permission bits; a link has none of its own. */
  mode: number | undefined;
  /** `undefined`: a name, which the image gives a number. */
  uid: number | undefined;
  gid: number | undefined;
  /** Bytes; `undefined` for a URL, and for what is not a file. */
  size: number | undefined;
}

/** Directories with something in them come with that. */
export function withoutImpliedDirectories(items: readonly PlannedItem[]): PlannedItem[] {
  return items.filter((item, index) => {
    if (item.kind !== "entry" || item.entry.type !== "directory") return true;
    const next = items[index + 1];
    return !item.isSourceRoot && (next === undefined || posix.dirname(next.path) !== item.path);
  });
}

export function describeItem(item: PlannedItem): Pick<PlannedFile, "type" | "source" | "mode" | "size"> {
  switch (item.kind) {
    case "document": {
      const { document, text, mode } = item;
      return { type: "file", source: `<<${document.name}`, mode, size: Buffer.byteLength(text) };
    }
    case "repository": {
      const { remote } = item.address;
      return { type: "directory", source: redactUrl(remote), mode: undefined, size: undefined };
    }
    case "url":
      return { type: "file", source: redactUrl(item.url), mode: item.mode, size: undefined };
    case "entry": {
      const { type, contextPath: source } = item.entry;
      const mode = type === "symlink" ? undefined : item.mode;
      return { type, source, mode, size: item.entry.type === "file" ? item.entry.size : undefined };
    }
  }
}
