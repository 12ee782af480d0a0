import { layerBranch } from "../../builder/cache/layer-cache.ts";
import type { HistoryEntry, NewEntry } from "../../store/sessions.ts";
import type { Store } from "../../store/store.ts";
import type { TableStyle } from "../../terminal/table.ts";

/** Where a session works, as it was when a command began. */
export interface WorkingBranch {
  key: string;
  branch: string;
  head: HistoryEntry | undefined;
}

export function workingBranch(store: Store, key: string): WorkingBranch {
  return { key, branch: store.branches.active(key), head: store.branches.head(key) };
}

/** Branches of a build's layers stay where they are: a build takes their images for what its instructions made. */
export function isLayerBranch(branch: string): boolean {
  return branch.startsWith(layerBranch(""));
}

/**
 * Shortens a layer's name on a terminal to the first digits of its hash, which `session checkout` takes, too. Elsewhere it is whole,
 * also where ids are short: it is a branch's name, which the specification has programs look for.
 */
export function shortLayer(branch: string, { columns }: TableStyle): string {
  return columns === undefined || !isLayerBranch(branch)
    ? branch
    : branch.slice(0, layerBranch("").length + 12);
}

interface AppendResult {
  entry: HistoryEntry;
  branch: string;
  /** The branch was made for this entry, since the one that work began on is a layer. */
  isNew: boolean;
  /** Somebody else has moved the branch meanwhile: their entry is in the history still. */
  hasMoved: boolean;
}

/** Adds entries, each on top of the one before, and moves the session's branch to the last. */
export function appendEntries(
  store: Store,
  from: WorkingBranch,
  entries: readonly Omit<NewEntry, "parent">[],
): AppendResult {
  const { key } = from;
  const branch = isLayerBranch(from.branch) ? freeName(store, from) : from.branch;
  const isNew = branch !== from.branch;
  const hasMoved = !isNew && store.sessions.findBranch(key, branch)?.id !== from.head?.id;
  let entry = from.head;
  for (const next of entries) {
    entry = store.sessions.commit(key, branch, { ...next, parent: entry?.id ?? null });
  }
  if (entry === undefined) throw new Error("nothing to add to the session's history");
  if (isNew) store.branches.checkOut(key, branch);
  return { entry, branch, isNew, hasMoved };
}

/** `debug:<first digits of the layer's hash>`, with a number where that is taken. */
function freeName(store: Store, { key, branch }: WorkingBranch): string {
  const name = `debug:${branch.slice(layerBranch("").length).slice(0, 12)}`;
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? name : `${name}-${number}`;
    if (store.sessions.findBranch(key, candidate) === undefined) return candidate;
  }
}
