/** What a COPY or ADD would put where, as far as it is known without the image. */

import type { StagedTypes } from "../builder/copy/destination.ts";
import type { PlannedCopy } from "../builder/copy/plan.ts";
import { numericOwner, root } from "../builder/owners/ownership.ts";
import { createIsKnown, type StageScope } from "../builder/state/scope.ts";
import type { AddInstruction, CopyInstruction } from "../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../dockerfile/text/directives.ts";
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

/** A stage without an image. */
export interface DryStage extends StageScope {
  /** `undefined` if it depends on a variable of the image. */
  workdir: string | undefined;
  /** True after any WORKDIR. */
  workdirIsSet: boolean;
  /** True if no WORKDIR was absolute: relative ones are resolved from `/`, although the image may have another WORKDIR. */
  workdirIsAssumed: boolean;
  staged: StagedTypes;
}

export function startDryStage(): DryStage {
  const words = { env: new Map(), args: new Map(), inherited: undefined, unknown: new Map(), config: {} };
  const place = { workdir: "/", workdirIsSet: false, workdirIsAssumed: true, staged: new Map() };
  return { ...words, ...place };
}
