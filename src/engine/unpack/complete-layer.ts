import { linkSync, lstatSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { directoryMode } from "../../image/file-mode.ts";
import type { Pace } from "../../pace.ts";
import { copyMetadata } from "../copies/upper-tree.ts";
import { copyContent } from "../copies/verified-copy.ts";
import { LayerTree, type MergedDirectory } from "../sandbox/root/layer-tree.ts";
import { lstatIfExists } from "../sandbox/root/root-path.ts";
import { setOwnerAndModeAt } from "../system/owner-and-mode.ts";
import { type BytePath, joinPath, type Path, pathNames, showPath, toPath } from "../system/path.ts";
import { makeWhiteout, markOpaque } from "../system/xattrs.ts";

/** The parts of a layer that depend on the layers below. Paths begin with a slash. */
export interface DeferredParts {
  /** Directories without an entry. */
  implied: BytePath[];
  /** Hard links to files that no earlier entry has. */
  links: { path: BytePath; target: BytePath }[];
  /** True if the root directory has an entry. */
  hasRoot: boolean;
  /** True if the layer hides everything of the layers below. */
  isRootOpaque: boolean;
  hasWhiteouts: boolean;
  /** True if a directory hides those of the layers below. */
  hasOpaque: boolean;
  /** The number of devices that were not made, since a user namespace does not allow it. */
  skippedDevices: number;
}

/**
 * Completes an unpacked layer with what depends on the layers below: attributes of directories without an entry, targets of hard
 * links, and whiteouts for an opaque root. `below` are the directories of those layers, the uppermost first.
 */
export async function completeLayer(
  directory: string,
  deferred: DeferredParts,
  below: readonly string[],
  { inUserNamespace, pace }: { inUserNamespace: boolean; pace: Pace },
): Promise<void> {
  const tree = new LayerTree(
    [directory, ...below].map((path, layer) => ({ layer, path })),
    inUserNamespace,
  );
  if (deferred.isRootOpaque) hideAll(directory, tree.root.slice(1), inUserNamespace);
  if (!deferred.hasRoot) inheritMetadata(directory, below[0]);
  const entered = new Map<BytePath, MergedDirectory>();
  for (const path of deferred.implied) {
    await pace.step();
    const at = path.lastIndexOf("/");
    const parent = entered.get(path.slice(0, at)) ?? enter(tree, pathNames(path.slice(0, at)));
    const merged = tree.enter(parent, toPath(path.slice(at + 1)));
    entered.set(path, merged);
    const [own] = merged;
    // This applies to an opaque directory, too: the mark does not concern the directory's own metadata.
    const [lower] = tree.enter(parent.slice(1), toPath(path.slice(at + 1)));
    if (own?.layer === 0) inheritMetadata(own.path, lower?.path);
  }
  for (const { path, target } of deferred.links) {
    await pace.step();
    await link(joinPath(directory, toPath(path.slice(1))), tree, target);
  }
}

/** Sets the metadata of a directory without an entry: that of the directory in the layers below, or else owner root and mode 0755. */
function inheritMetadata(directory: Path, lower: Path | undefined): void {
  if (lower === undefined) {
    setOwnerAndModeAt(directory, { uid: 0, gid: 0 }, { mode: directoryMode });
    return;
  }
  copyMetadata(lower, directory, lstatSync(lower));
}

function enter(tree: LayerTree, names: readonly BytePath[]): MergedDirectory {
  return names.reduce((directory, name) => tree.enter(directory, toPath(name)), tree.root);
}

async function link(path: Path, tree: LayerTree, target: BytePath): Promise<void> {
  const names = pathNames(target);
  const name = names.pop();
  const found = name === undefined ? undefined : tree.find(enter(tree, names), toPath(name));
  if (found === undefined || !found.stats.isFile())
    throw new BoughError(`a hard link refers to ${showPath(target)}, and there is no such file`);
  // A later entry may have taken the link's name.
  if (lstatIfExists(path) !== undefined) return;
  if (found.layer === 0) {
    linkSync(found.path, path);
    return;
  }
  // Layers share no inodes, so the link becomes a copy.
  await copyContent(found.path, path, found.stats.size);
  copyMetadata(found.path, path, found.stats);
}

/** Hides everything in the layers below, entry by entry: overlayfs has no opaque root. */
function hideAll(directory: string, below: MergedDirectory, inUserNamespace: boolean): void {
  for (const { name } of new LayerTree(below, inUserNamespace).list(below)) {
    const path = joinPath(directory, name);
    const stats = lstatIfExists(path);
    if (stats?.isDirectory()) markOpaque(path, inUserNamespace);
    else if (stats === undefined) makeWhiteout(path);
  }
}
