import type { AddInstruction, CopyInstruction } from "../../dockerfile/instruction.ts";
import type { PlannedItem } from "../copy/planned-items.ts";
import type { Dialect } from "../dialect.ts";

/** Returns true if an item may be an archive to unpack: with `--unpack`, or a local one without that flag, as in Docker. */
export function mayUnpack(
  instruction: CopyInstruction | AddInstruction,
  item: PlannedItem,
  dialect: Dialect,
): boolean {
  if (instruction.name !== "ADD" || !(instruction.unpack ?? dialect.unpacksArchives)) return false;
  if (item.kind === "url") return instruction.unpack === true;
  return item.kind === "entry" && item.entry.type === "file" && !item.isBelowSource;
}
