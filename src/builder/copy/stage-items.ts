import { posix } from "node:path";
import { createPace } from "../../pace.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import { collectGarbage } from "../staging/gc.ts";
import { addEach, type Staged, type StagedEntry } from "../staging/staged.ts";
import type { Destination } from "./destination.ts";
import { isSameOrAbove, parentDirectories, stageDirectories } from "./made-directories.ts";
import { isRoot, type Owner } from "./ownership.ts";

/** What goes where, each item with its place in the image. */
export interface PlacedItems<Item extends { path: string }> {
  destination: Destination;
  items: readonly Item[];
  /** A directory that stands for its contents: it only has to exist. */
  isSourceRoot(item: Item): boolean;
  /** A directory with a mode and an owner of its own. */
  isNestedDirectory(item: Item): boolean;
  /** `mayBeThere`: a directory in the image may have another mode and owner. */
  toStaged(item: Item, mayBeThere: boolean): StagedEntry | Promise<StagedEntry>;
}

/** Stages items, and the directories on their way, which belong to `owner` where they have to be made. */
export async function stageItems<Item extends { path: string }>(
  { destination, items, ...of }: PlacedItems<Item>,
  { owner, line }: { owner: Owner; line: number },
  stage: StageState,
  build: BuildJob,
): Promise<{ staged: Staged; files: number; bytes: number }> {
  const { staged } = stage;
  const isDirectoryInImage = (path: string) => build.facts.isDirectory(stage.layer.image, path);
  const place = destination.isDirectory ? destination.path : posix.dirname(destination.path);
  const isIntoExisting =
    items.length > 0 &&
    (!isRoot(owner) || items.some((item) => of.isNestedDirectory(item))) &&
    (await isDirectoryInImage(place));
  /** Paths of directory sources: Docker copies their contents, not themselves. */
  const roots: string[] = [];
  /** Paths and entries apart: of a large context, a pair for each would be felt. */
  const paths: string[] = [];
  const entries: StagedEntry[] = [];
  const amount = { files: 0, bytes: 0 };
  const pace = createPace(build.signal);
  for (const item of items) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    if (of.isSourceRoot(item)) {
      roots.push(item.path);
      continue;
    }
    const mayBeThere =
      of.isNestedDirectory(item) &&
      (staged.has(item.path) || (isIntoExisting && (await isDirectoryInImage(nextBelow(place, item.path)))));
    const staging = of.toStaged(item, mayBeThere);
    // Waiting for each of a large context's files would be felt.
    const entry = staging instanceof Promise ? await staging : staging;
    paths.push(item.path);
    entries.push(entry);
    if (entry.type !== "file") continue;
    amount.files += 1;
    amount.bytes += entry.size;
  }
  // Before there is more: the two would add up.
  collectGarbage(amount.files);
  const made = directoriesToMake(roots, paths, owner).filter(
    (path) => !(isIntoExisting && isSameOrAbove(path, place)),
  );
  const directories = stageDirectories(made, owner, line, stage);
  await pace.step();
  const added = addEach(staged, (add) => {
    for (const [path, entry] of directories) add(path, entry);
    paths.forEach((path, index) => {
      const entry = entries[index];
      if (entry !== undefined) add(path, entry);
    });
  });
  return { staged: added, ...amount };
}

/** Root's parents of a file need no mention: the service makes them. */
function directoriesToMake(roots: readonly string[], paths: readonly string[], owner: Owner): string[] {
  if (isRoot(owner)) return [...roots];
  return [
    ...roots.flatMap((path) => [...parentDirectories(path), path]),
    ...paths.flatMap((path) => parentDirectories(path)),
  ];
}

/** The directory next below `place` on the way to `path`: where the image lacks it, it lacks `path`, too. */
function nextBelow(place: string, path: string): string {
  const [top = ""] = posix.relative(place, path).split("/");
  return posix.join(place, top);
}
