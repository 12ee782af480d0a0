import type { ListedEntry } from "../../context/sources/entry-list.ts";
import type { SourceMatch } from "../../context/sources/source-match.ts";
import type { HereDocument } from "../../dockerfile/instruction.ts";
import type { ModeChange } from "../../image/mode-change.ts";
import type { RepositoryAddress } from "../repositories/repository-address.ts";
import { type Destination, placeEntry } from "./destination.ts";
import { defaultDirectoryMode } from "./made-directories.ts";

interface Placed {
  /** Absolute, in the image. */
  path: string;
  /** The mode of the copied file; a symbolic link has none of its own. */
  mode: number;
}

export interface PlannedEntry extends Placed {
  kind: "entry";
  entry: ListedEntry;
  /** The directory that stands for its contents: it only has to exist. */
  isSourceRoot: boolean;
  /** It comes with a directory that is copied. */
  isBelowSource: boolean;
}

export interface PlannedDocument extends Placed {
  kind: "document";
  document: HereDocument;
  /** Variables replaced. */
  text: string;
}

export interface PlannedUrl extends Placed {
  kind: "url";
  url: string;
}

/** What a git repository has goes into the directory that `path` is, or becomes. */
export interface PlannedRepository extends Placed {
  kind: "repository";
  address: RepositoryAddress;
}

/** `after`: how many matches of the context come before it. */
export type OtherItem = { after: number } & (PlannedDocument | PlannedUrl | PlannedRepository);

export type PlannedItem = PlannedEntry | OtherItem;

/**
 * Items in the order in which later ones replace earlier ones of the same path. Those of the context are made as they are asked
 * for: of a large one, all at once would be felt.
 */
export class PlannedItems implements Iterable<PlannedItem> {
  readonly matches: readonly SourceMatch[];
  /** Items that are not of the context, in order. */
  readonly others: readonly OtherItem[];
  readonly #placing: { destination: Destination; change: ModeChange };

  constructor(
    matches: readonly SourceMatch[],
    others: readonly OtherItem[],
    placing: { destination: Destination; change: ModeChange },
  ) {
    this.matches = matches;
    this.others = others;
    this.#placing = placing;
  }

  /** Returns whether two sources may bring the same path, one of them a directory there and the other something else. */
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

/** Returns whether a source is a directory, whose contents are copied. */
export function bringsDirectory({ items }: { items: PlannedItems }): boolean {
  for (const item of items)
    if (item.kind === "repository" || (item.kind === "entry" && item.isSourceRoot)) return true;
  return false;
}

function planEntry(
  entry: ListedEntry,
  match: SourceMatch,
  destination: Destination,
  change: ModeChange,
): PlannedEntry {
  const isSourceRoot = entry.relativePath === "";
  const mode = isSourceRoot ? defaultDirectoryMode : change(entry.mode, entry.type === "directory");
  return {
    kind: "entry",
    path: placeEntry(destination, match, entry.relativePath),
    entry,
    isSourceRoot,
    isBelowSource: match.isDirectory,
    mode,
  };
}
