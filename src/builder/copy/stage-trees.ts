import type { AddInstruction, CopyInstruction } from "../../dockerfile/instruction.ts";
import type { Dialect } from "../dialect.ts";
import type { BuildJob } from "../job.ts";
import type { StageState } from "../state/state.ts";
import type { PlannedItem, PlannedItems } from "./planned-items.ts";
import type { StagedItems } from "./stage-items.ts";
import type { Unpacking } from "./unpack.ts";
import type { CopyWords } from "./words.ts";

interface TreeStaging extends Pick<Unpacking, "destination" | "owner" | "line"> {
  words: CopyWords;
  stageBetween(items: Iterable<PlannedItem>, stage: StageState): Promise<StagedItems>;
}

/**
 * Stages the contents of archives and repositories among the items, and the items before them with `stageBetween`, since a later
 * source replaces an earlier one at the same path. Returns the items after the last of them.
 */
export async function stageTrees(
  instruction: CopyInstruction | AddInstruction,
  items: PlannedItems,
  { words, stageBetween, ...place }: TreeStaging,
  stage: StageState,
  build: BuildJob,
): Promise<{ items: Iterable<PlannedItem>; stage: StageState; files: number; bytes: number }> {
  const done = { stage, files: 0, bytes: 0 };
  if (!hasTrees(instruction, items, build.asked.dialect)) return { items, ...done };
  const add = ({ staged, files, bytes }: StagedItems) => {
    done.stage = { ...done.stage, staged };
    done.files += files;
    done.bytes += bytes;
  };
  const others: PlannedItem[] = [];
  /** Returns the stage with all items before a tree. Not called for an item that turns out not to be an archive. */
  const stageBefore = async () => {
    if (others.length > 0) add(await stageBetween(others.splice(0), done.stage));
    return done.stage;
  };
  const stageTree = async (item: PlannedItem) => {
    if (item.kind === "repository") {
      const { stageRepository } = await import("./stage-repository.ts");
      return stageRepository(item.address, { words, ...place }, stageBefore, build);
    }
    const { stageArchive } = await import("./unpack.ts");
    return stageArchive(item, { words, ...place }, stageBefore, build);
  };
  for (const item of items) {
    const made = isTree(instruction, item, build.asked.dialect) ? await stageTree(item) : undefined;
    if (made === undefined) others.push(item);
    else add(made);
  }
  return { items: others, ...done };
}

/** Returns true if there may be an archive or a repository among the items. */
export function hasTrees(
  instruction: CopyInstruction | AddInstruction,
  items: PlannedItems,
  dialect: Dialect,
): boolean {
  if (instruction.name === "COPY") return false;
  return items[Symbol.iterator]().some((item) => isTree(instruction, item, dialect));
}

/** An archive is unpacked with `--unpack`, or if it is local and that flag is missing, as in Docker. */
function isTree(instruction: CopyInstruction | AddInstruction, item: PlannedItem, dialect: Dialect): boolean {
  if (item.kind === "repository") return true;
  if (instruction.name !== "ADD" || !(instruction.unpack ?? dialect.unpacksArchives)) return false;
  if (item.kind === "url") return instruction.unpack === true;
  return item.kind === "entry" && item.entry.type === "file" && !item.isBelowSource;
}
