import { lstatSync } from "node:fs";
import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { namesIn } from "../../image/copy-sources.ts";
import type { ModeChange } from "../../image/file-mode.ts";
import { typeOf } from "../system/path.ts";
import type { SelectedSource } from "./copy-spec.ts";
import { ImageCopier, type ImageCopyJob, type Slot } from "./image-copier.ts";
import { giveTimes, type Ids, type UpperDirectory, type UpperTree } from "./upper-tree.ts";

/** The destination of one copy's sources, and their owner and mode there. */
interface CopyTarget {
  destination: string;
  owner: Ids | undefined;
  changeMode: ModeChange | undefined;
}

/** Copies one source to its destination, as BuildKit does. */
export async function copyFromImage(
  source: SelectedSource,
  { destination, owner, changeMode }: CopyTarget,
  job: ImageCopyJob,
): Promise<void> {
  const { from, to } = job;
  const { links, ...unlinked } = job;
  // A file on its own has one link, as in BuildKit: a hard link to the layer that it is from would be a second one.
  const isLinked = source.type === "directory" && links !== undefined;
  const copier = new ImageCopier(isLinked ? job : unlinked, owner, changeMode);
  const place = posix.normalize(destination);
  const isDirectory = /\/\.?$/.test(destination);
  makeParents(to, to.resolve(isDirectory ? place : posix.dirname(place)), owner);
  const names = to.resolve(place);
  const existing = names.length === 0 ? "directory" : typeAt(to, names);
  if (source.type === "directory") {
    if (existing !== undefined && existing !== "directory")
      throw new BoughError(`cannot copy to non-directory: /${names.join("/")}`);
    const root = makeParents(to, names, owner);
    const slot: Slot = { open: () => ({ directory: root, isNew: existing === undefined }) };
    const contents = from.enterPath(source.path);
    await copier.copyChildren(contents, slot, source.filters);
    await copier.finish();
    const [original] = contents;
    if (original === undefined) return;
    to.materialize(root);
    giveTimes(root.path, lstatSync(original.path));
    return;
  }
  const path = existing === "directory" ? [...names, source.name] : names;
  const name = path.at(-1) ?? "";
  const parts = namesIn(source.path);
  const found = from.find(from.enterPath(parts.slice(0, -1).join("/")), parts.at(-1) ?? "");
  if (found === undefined) throw new BoughError(`${JSON.stringify(source.path)}: not found`);
  const entry = { ...found, name, type: typeOf(found.stats) };
  const directory = makeParents(to, path.slice(0, -1), owner);
  await copier.copyEntry(entry, { directory, isNew: false });
  await copier.finish();
}

function makeParents(to: UpperTree, names: readonly string[], owner: Ids | undefined): UpperDirectory {
  return to.makeDirectories(names, owner, (inside) => new BoughError(`mkdir ${inside}: not a directory`));
}

/** Returns the type of the entry at resolved names, `undefined` if there is none. */
function typeAt(to: UpperTree, names: readonly string[]): ReturnType<typeof typeOf> | undefined {
  let directory = to.root;
  for (const [index, name] of names.entries()) {
    const found = to.find(directory, name);
    if (found === undefined) return undefined;
    if (index === names.length - 1) return typeOf(found.stats);
    if (!found.stats.isDirectory()) return undefined;
    directory = to.enter(directory, name);
  }
  return undefined;
}
