import type { AddInstruction, CopyInstruction } from "../../dockerfile/instruction.ts";
import { mayUnpack } from "../archives/may-unpack.ts";
import type { Unpacking } from "../archives/unpack.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import type { PlannedItem, PlannedItems } from "./planned-items.ts";
import type { stageItems } from "./stage-items.ts";
import type { CopyWords } from "./words.ts";

interface TreeStaging extends Pick<Unpacking, "destination" | "owner" | "line"> {
  words: CopyWords;
  stageBetween(items: Iterable<PlannedItem>, stage: StageState): ReturnType<typeof stageItems>;
}

/**
 * Stages what the archives and repositories among the items hold, and what comes before them by `stageBetween`: a later source
 * replaces what an earlier one has at the same path. The items behind the last of them are left.
 */
export async function stageTrees(
  instruction: CopyInstruction | AddInstruction,
  items: PlannedItems,
  { words, stageBetween, ...place }: TreeStaging,
  stage: StageState,
  build: BuildJob,
): Promise<{ items: Iterable<PlannedItem>; stage: StageState; files: number; bytes: number }> {
  const done = { stage, files: 0, bytes: 0 };
  const isTree = (item: PlannedItem) =>
    item.kind === "repository" || mayUnpack(instruction, item, build.mode);
  if (instruction.name === "COPY" || !items[Symbol.iterator]().some(isTree)) return { items, ...done };
  const add = ({ staged, files, bytes }: Awaited<ReturnType<typeof stageItems>>) => {
    done.stage = { ...done.stage, staged };
    done.files += files;
    done.bytes += bytes;
  };
  const others: PlannedItem[] = [];
  /** The stage with all that comes before a tree; not asked for where an item is none after all. */
  const reach = async () => {
    if (others.length > 0) add(await stageBetween(others.splice(0), done.stage));
    return done.stage;
  };
  const stageTree = async (item: PlannedItem) => {
    if (item.kind === "repository") {
      const { stageRepository } = await import("../repositories/stage-repository.ts");
      return stageRepository(item.address, { words, ...place }, reach, build);
    }
    const { stageArchive } = await import("../archives/unpack.ts");
    return stageArchive(item, { checksum: words.checksum, ...place }, reach, build);
  };
  for (const item of items) {
    const made = isTree(item) ? await stageTree(item) : undefined;
    if (made === undefined) others.push(item);
    else add(made);
  }
  return { items: others, ...done };
}
