import { layerBranch } from "../../builder/cache/layer-cache.ts";
import type { HistoryEntry, NewEntry } from "../../store/sessions.ts";
import type { Store } from "../../store/store.ts";
import type { TableStyle } from "../../terminal/table.ts";

/** A session's active branch and its head at the start of a command. */
export interface WorkingBranch {
  key: string;
  branch: string;
  head: HistoryEntry | undefined;
}

export function workingBranch(store: Store, key: string): WorkingBranch {
  return { key, branch: store.branches.active(key), head: store.branches.head(key) };
}

/** True for the branch of a build's layer, which must not move: builds use its image as the result of an instruction. */
export function isLayerBranch(branch: string): boolean {
  return branch.startsWith(layerBranch(""));
}

/** Returns the branches at an image, except those of builds, which can be repeated. */
export function workingBranchesOf(image: string, store: Store): { session: string; branch: string }[] {
  return store.branches.ofImage(image).filter(({ branch }) => !isLayerBranch(branch));
}

/**
 * Shortens a layer's name on a terminal to the first digits of its hash, which `session checkout` accepts. Elsewhere the name stays
 * complete, since by the specification programs look for it.
 */
export function shortLayer(branch: string, { columns }: TableStyle): string {
  return columns === undefined || !isLayerBranch(branch)
    ? branch
    : branch.slice(0, layerBranch("").length + 12);
}

interface AppendResult {
  branch: string;
  /** True if the branch was created for this entry, because the command started from the branch of a layer. */
  isNew: boolean;
  /** True if another command has moved the branch meanwhile. That command's entry stays in the history. */
  hasMoved: boolean;
}

/** Adds entries, each as the child of the one before, and moves the session's branch to the last. */
export function appendEntries(
  store: Store,
  from: WorkingBranch,
  entries: readonly Omit<NewEntry, "parent">[],
): AppendResult {
  const { key } = from;
  const branch = isLayerBranch(from.branch) ? unusedBranchName(store, from) : from.branch;
  const isNew = branch !== from.branch;
  const hasMoved = !isNew && store.sessions.findBranch(key, branch)?.id !== from.head?.id;
  let head = from.head;
  for (const next of entries)
    head = store.sessions.commit(key, branch, { ...next, parent: head?.id ?? null });
  if (isNew) store.branches.checkOut(key, branch);
  return { branch, isNew, hasMoved };
}

/** Returns `debug:<first digits of the layer's hash>`, with a number if the name is used. */
function unusedBranchName(store: Store, { key, branch }: WorkingBranch): string {
  const name = `debug:${branch.slice(layerBranch("").length).slice(0, 12)}`;
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? name : `${name}-${number}`;
    if (store.sessions.findBranch(key, candidate) === undefined) return candidate;
  }
}
