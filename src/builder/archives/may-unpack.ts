import type { AddInstruction, CopyInstruction } from "../../dockerfile/instruction.ts";
import type { PlannedItem } from "../copy/planned-items.ts";
import type { BuildMode } from "../job.ts";

/** Returns whether an item may be an archive that is to be unpacked: `--unpack`, or what Docker does with local ones without it. */
export function mayUnpack(
  instruction: CopyInstruction | AddInstruction,
  item: PlannedItem,
  mode: BuildMode,
): boolean {
  if (instruction.name !== "ADD" || !(instruction.unpack ?? mode === "docker")) return false;
  if (item.kind === "url") return instruction.unpack === true;
  return item.kind === "entry" && item.entry.type === "file" && !item.isBelowSource;
}
