import { numericOwner, root } from "../builder/copy/ownership.ts";
import { type CopyPlan, planCopy, type Surroundings } from "../builder/copy/plan.ts";
import { type CopyWords, expandCopyWords } from "../builder/copy/words.ts";
import { describeExcluded, skippedCopyFrom } from "../builder/interpreter/warnings.ts";
import type { AddInstruction, CopyInstruction } from "../dockerfile/instruction.ts";
import type { Lookup } from "../dockerfile/words/words.ts";
import { BoughError } from "../errors.ts";
import { extend } from "../persistent-map.ts";
import { type IsKnown, knowledgeOf } from "./known.ts";
import type { PlanJob, PlannedStage } from "./plan-state.ts";
import { describeItem, itemsOfTheirOwn, type PlannedFile } from "./planned-file.ts";

/** The sources themselves can't be copied: they are missing, lead out of the context, can't be read. */
export class SourceError extends BoughError {
  override readonly name = "SourceError";
}

/** A COPY or ADD as the build would carry it out, as far as that can be told without a service. */
export async function planCopying(
  instruction: CopyInstruction | AddInstruction,
  stage: PlannedStage,
  lookup: Lookup,
  job: PlanJob,
): Promise<PlannedStage> {
  if (instruction.name === "COPY" && instruction.from !== undefined) {
    const { rule, message } = skippedCopyFrom(instruction.from);
    job.warn(rule, message, instruction);
    return stage;
  }
  const isKnown = knowledgeOf(stage, job.escape);
  if (!areSourcesKnown(instruction, isKnown)) return stage;
  const words = expandCopyWords(withoutUnknown(instruction, isKnown), lookup, job.escape);
  const isAbsolute = words.destination.startsWith("/");
  const isPlaceKnown = isKnown(instruction.destination) && (stage.workdir !== undefined || isAbsolute);

  let hasAsked = false;
  const plan = await findSources(
    { ...words, destination: isPlaceKnown ? words.destination : "/" },
    instruction,
    {
      ...job,
      ...stage,
      workdir: stage.workdir ?? "/",
      lookup,
      isDirectoryInImage: async () => {
        hasAsked = true;
        return false;
      },
    },
  );
  for (const { rule, message } of [...words.warnings, ...plan.warnings]) job.warn(rule, message, instruction);
  if (plan.excluded.length > 0) job.warn("DefaultExclude", describeExcluded(plan.excluded), instruction);

  const isCertain = !hasAsked && isPlaceKnown && (isAbsolute || !stage.workdirIsAssumed);
  const destinationIs = plan.destination.isDirectory ? "directory" : "file";
  const owner = ownerOf(instruction, words, isKnown);
  for (const item of itemsOfTheirOwn(plan.items)) {
    const file: PlannedFile = {
      line: instruction.range.start,
      ...describeItem(item),
      destination: isPlaceKnown ? item.path : undefined,
      destinationIs: isCertain ? destinationIs : "unknown",
      ...owner,
    };
    const hasKnownText = item.kind !== "document" || !item.document.expand || isKnown(item.document.content);
    job.plan.files.push(hasKnownText ? file : { ...file, size: undefined });
  }
  return isPlaceKnown ? { ...stage, staged: extend(stage.staged, typesOf(plan)) } : stage;
}

function areSourcesKnown(instruction: CopyInstruction | AddInstruction, isKnown: IsKnown): boolean {
  const words = instruction.sources.map((source) => (source.kind === "path" ? source.path : ""));
  const checksum = instruction.name === "ADD" ? instruction.checksum : undefined;
  return [...words, ...instruction.exclude, instruction.chmod ?? "", checksum ?? ""].every(isKnown);
}

/** What is not known stands for itself nowhere: an empty word would be an error, and need not be one. */
function withoutUnknown<Instruction extends CopyInstruction | AddInstruction>(
  instruction: Instruction,
  isKnown: IsKnown,
): Instruction {
  const destination = isKnown(instruction.destination) ? instruction.destination : "/";
  return {
    ...instruction,
    destination,
    chown: isKnown(instruction.chown ?? "") ? instruction.chown : undefined,
  };
}

function ownerOf(
  { chown }: CopyInstruction | AddInstruction,
  words: CopyWords,
  isKnown: IsKnown,
): Pick<PlannedFile, "uid" | "gid"> {
  if (!isKnown(chown ?? "")) return { uid: undefined, gid: undefined };
  return words.chown === "" ? root : numericOwner(words.chown);
}

async function findSources(
  words: CopyWords,
  instruction: CopyInstruction | AddInstruction,
  around: Surroundings,
): Promise<CopyPlan> {
  try {
    return await planCopy(words, instruction, around);
  } catch (error) {
    if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
    const { message, hint } = error;
    throw new SourceError(message, { cause: error, ...(hint === undefined ? {} : { hint }) });
  }
}

function typesOf({ items }: CopyPlan): [path: string, { type: string }][] {
  return items.map((item) => [item.path, { type: item.kind === "entry" ? item.entry.type : "file" }]);
}
