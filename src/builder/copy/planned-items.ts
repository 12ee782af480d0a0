import type { ListedEntry, SourceMatch } from "../../context/sources/entry-list.ts";
import type { HereDocument } from "../../dockerfile/instruction.ts";
import { directoryMode, type ModeChange } from "../../image/file-mode.ts";
import type { RepositoryAddress } from "../addresses/repository-address.ts";
import { type CopyDestination, placeEntry } from "./destination.ts";

interface Placed {
  /** Absolute, in the image. */
  path: string;
  /** The mode of the copied file; a symbolic link has none of its own. */
  mode: number;
}

export interface PlannedEntry extends Placed {
  kind: "entry";
  entry: ListedEntry;
  /** True for the source directory itself, whose contents are copied: it only has to exist. */
  isSourceRoot: boolean;
  /** True if it is inside a copied directory. */
  isBelowSource: boolean;
}

export interface PlannedDocument extends Placed {
  kind: "document";
  document: HereDocument;
  /** The text with variables replaced. */
  text: string;
}

export interface PlannedUrl extends Placed {
  kind: "url";
  url: string;
}

/** A git repository, whose files go into the directory `path`. */
export interface PlannedRepository extends Placed {
  kind: "repository";
  address: RepositoryAddress;
}

/** `after`: the number of the context's matches that come before it. */
export type OtherItem = { after: number } & (PlannedDocument | PlannedUrl | PlannedRepository);

export type PlannedItem = PlannedEntry | OtherItem;

/**
 * Items in the order in which later ones replace earlier ones of the same path. Those of the context are created on demand: for a
 * large one, a list of all takes noticeable memory.
 */
export class PlannedItems implements Iterable<PlannedItem> {
  readonly matches: readonly SourceMatch[];
  /** Items that are not from the context, in order. */
  readonly others: readonly OtherItem[];
  readonly #placing: { destination: CopyDestination; change: ModeChange };

  constructor(
    matches: readonly SourceMatch[],
    others: readonly OtherItem[],
    placing: { destination: CopyDestination; change: ModeChange },
  ) {
    this.matches = matches;
    this.others = others;
    this.#placing = placing;
  }

  /** Returns true if two sources may have the same path, one as a directory and the other as something else. */
  mayMeet(): boolean {
    if (this.matches.length + this.others.length < 2) return false;
    return this.matches.some(({ isDirectory }) => isDirectory);
  }

  *[Symbol.iterator](): Generator<PlannedItem, undefined> {
    const { destination, change } = this.#placing;
    let next = 0;
    for (let index = 0; index <= this.matches.length; index++) {
      for (let other = this.others[next]; other?.after === index; other = this.others[++next]) yield other;
      const match = this.matches[index];
      if (match === undefined) return;
      for (const entry of match.entries) {
        const planned = planEntry(entry, match, destination, change);
        if (planned.path !== "/") yield planned;
      }
    }
  }
}

/** Returns true if a source is a directory, whose contents are copied. */
export function copiesDirectory({ items }: { items: PlannedItems }): boolean {
  for (const item of items)
    if (item.kind === "repository" || (item.kind === "entry" && item.isSourceRoot)) return true;
  return false;
}

function planEntry(
  entry: ListedEntry,
  match: SourceMatch,
  destination: CopyDestination,
  change: ModeChange,
): PlannedEntry {
  const isSourceRoot = entry.relativePath === "";
  const mode = isSourceRoot ? directoryMode : change(entry.mode, entry.type === "directory");
  return {
    kind: "entry",
    path: placeEntry(destination, match, entry.relativePath),
    entry,
    isSourceRoot,
    isBelowSource: match.isDirectory,
    mode,
  };
}
