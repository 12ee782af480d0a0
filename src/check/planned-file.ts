import { posix } from "node:path";
import { redactUrl } from "../builder/addresses/source-url.ts";
import type { PlannedCopy } from "../builder/copy/plan.ts";
import type { PlannedItem } from "../builder/copy/planned-items.ts";
import { numericOwner, root } from "../builder/owners/ownership.ts";
import { createIsKnown, type StageScope } from "../builder/state/scope.ts";
import type { AddInstruction, CopyInstruction } from "../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../dockerfile/text/directives.ts";

/** One file, link or empty directory that a COPY or ADD creates. Values that depend on the image are `undefined`. */
export interface PlannedFile {
  /** The instruction's line. */
  line: number;
  type: "file" | "directory" | "symlink" | "special";
  /** A path in the build context, a URL, or `<<NAME`. */
  source: string;
  /** The name of the `--build-context` that it comes from. */
  context?: string;
  /** The absolute path in the image; `undefined` if it depends on a variable of the image. */
  destination: string | undefined;
  /**
   * The type of what the instruction's last word names. `unknown`: it depends on the image, which may have a directory at
   * `destination`, so that the file goes into it under its own name, or a WORKDIR that a relative path is resolved from.
   */
  destinationIs: "file" | "directory" | "unknown";
  /** Permission bits; `undefined` for a link, which has none. */
  mode: number | undefined;
  /** `undefined` if the owner is given as a name, whose number depends on the image. */
  uid: number | undefined;
  gid: number | undefined;
  /** The size in bytes; `undefined` for a URL, and for anything but a file. */
  size: number | undefined;
}

/** Returns the files that a COPY or ADD would create, as far as they are known without the image. */
export function plannedFiles(
  instruction: CopyInstruction | AddInstruction,
  { words, plan, isDestinationKnown, dependsOnImage }: PlannedCopy,
  stage: StageScope & { workdirIsAssumed: boolean },
  escape: EscapeCharacter,
): PlannedFile[] {
  const isKnown = createIsKnown(stage, escape);
  const isCertain =
    !dependsOnImage && isDestinationKnown && (words.destination.startsWith("/") || !stage.workdirIsAssumed);
  const destinationIs = plan.destination.isDirectory ? "directory" : "file";
  const isOwnerKnown = isKnown(instruction.chown ?? "");
  const named = words.chown === "" ? root : numericOwner(words.chown);
  const { uid, gid } = isOwnerKnown ? named : { uid: undefined, gid: undefined };
  return withoutImpliedDirectories([...plan.items]).map((item): PlannedFile => {
    const hasKnownText = item.kind !== "document" || !item.document.expand || isKnown(item.document.content);
    return {
      line: instruction.range.start,
      ...describeItem(item),
      destination: isDestinationKnown ? item.path : undefined,
      destinationIs: isCertain ? destinationIs : "unknown",
      uid,
      gid,
      ...(hasKnownText ? {} : { size: undefined }),
    };
  });
}

/** Leaves out directories that are not empty: their entries imply them. */
function withoutImpliedDirectories(items: readonly PlannedItem[]): PlannedItem[] {
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
