/** What a COPY or ADD would put where, as far as it is known without the image. */

import type { PlannedCopy } from "../builder/copy/plan.ts";
import { numericOwner, root } from "../builder/owners/ownership.ts";
import { createIsKnown } from "../builder/state/scope.ts";
import type { AddInstruction, CopyInstruction } from "../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../dockerfile/text/directives.ts";
import type { DryStage } from "./dry-stage.ts";
import { describeItem, type PlannedFile, withoutImpliedDirectories } from "./planned-file.ts";

/** Returns the files to report. */
export function filesOf(
  instruction: CopyInstruction | AddInstruction,
  { words, plan, isPlaceKnown, isImageAsked }: PlannedCopy,
  stage: DryStage,
  escape: EscapeCharacter,
): PlannedFile[] {
  const isKnown = createIsKnown(stage, escape);
  const isCertain =
    !isImageAsked && isPlaceKnown && (words.destination.startsWith("/") || !stage.workdirIsAssumed);
  const destinationIs = plan.destination.isDirectory ? "directory" : "file";
  const isOwnerKnown = isKnown(instruction.chown ?? "");
  const named = words.chown === "" ? root : numericOwner(words.chown);
  const { uid, gid } = isOwnerKnown ? named : { uid: undefined, gid: undefined };
  return withoutImpliedDirectories([...plan.items]).map((item): PlannedFile => {
    const hasKnownText = item.kind !== "document" || !item.document.expand || isKnown(item.document.content);
    return {
      line: instruction.range.start,
      ...describeItem(item),
      destination: isPlaceKnown ? item.path : undefined,
      destinationIs: isCertain ? destinationIs : "unknown",
      uid,
      gid,
      ...(hasKnownText ? {} : { size: undefined }),
    };
  });
}

/** Returns the entries that later instructions find, by path. */
export function typesOf({ plan }: PlannedCopy): [path: string, { type: string; target?: string }][] {
  return Array.from(plan.items, (item) => [
    item.path,
    item.kind === "entry" ? item.entry : describeItem(item),
  ]);
}
