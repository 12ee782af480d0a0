import type { AddInstruction, CopyInstruction } from "../../dockerfile/instruction.ts";
import type { Lookup } from "../../dockerfile/words/words.ts";
import { sourceDirectory } from "../contexts/named-context.ts";
import { expandCopyWords } from "../copy/words.ts";
import type { IsKnown, StageScope } from "../state/scope.ts";
import { skippedCopyFrom } from "../state/warnings.ts";
import type { World } from "./world.ts";

type Copying = CopyInstruction | AddInstruction;

/** Interprets COPY and ADD: expands the words and plans where each source goes. The world performs the plan. */
export async function interpretCopy<Stage extends StageScope>(
  instruction: Copying,
  { stage, lookup, isKnown }: { stage: Stage; lookup: Lookup; isKnown: IsKnown },
  world: World<Stage>,
): Promise<Stage> {
  const isFromImage = instruction.name === "COPY" && instruction.from !== undefined;
  if (isFromImage && !world.dialect.copiesFromImages) {
    world.warn(skippedCopyFrom(instruction.from ?? ""), instruction);
    return stage;
  }
  if (!areSourcesKnown(instruction, isKnown)) return stage;
  const { escape } = world;
  const words = expandCopyWords(withoutUnknown(instruction, isKnown), lookup, escape, world.dialect);
  if (!world.dialect.unpacksArchives) for (const warning of words.warnings) world.warn(warning, instruction);
  if (isFromImage && sourceDirectory(instruction, world.contexts) === undefined)
    return world.copyFromImage(instruction, words, stage);
  const options = await world.copyOptions(instruction, stage);
  const isPlaceKnown =
    isKnown(instruction.destination) && (options.workdir !== undefined || words.destination.startsWith("/"));
  const known = isPlaceKnown ? words : { ...words, destination: "/" };
  const workdir = options.workdir ?? "/";
  let isImageAsked = false;
  const isDirectoryInImage = (path: string) => {
    isImageAsked = true;
    return options.isDirectoryInImage(path);
  };
  const place = { dialect: world.dialect, workdir, isDirectoryInImage };
  const plan = await world.planCopy(known, instruction, { ...options, ...place, lookup, escape });
  for (const warning of plan.warnings) world.warn(warning, instruction);
  return world.copy(instruction, { words, plan, isPlaceKnown, isImageAsked }, stage);
}

function areSourcesKnown(instruction: Copying, isKnown: IsKnown): boolean {
  const words = instruction.sources.map((source) => (source.kind === "path" ? source.path : ""));
  const checksum = instruction.name === "ADD" ? instruction.checksum : undefined;
  return [...words, ...instruction.exclude, instruction.chmod ?? "", checksum ?? ""].every(isKnown);
}

/** Replaces unknown words by valid ones, since an empty word may be an error. */
function withoutUnknown<Instruction extends Copying>(
  instruction: Instruction,
  isKnown: IsKnown,
): Instruction {
  const destination = isKnown(instruction.destination) ? instruction.destination : "/";
  const chown = isKnown(instruction.chown ?? "") ? instruction.chown : undefined;
  return { ...instruction, destination, chown };
}
