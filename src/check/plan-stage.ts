import { defaultPath } from "../builder/interpreter/inherited.ts";
import { pathInImage } from "../builder/interpreter/path-in-image.ts";
import { canBeLeftOut } from "../builder/interpreter/refusals.ts";
import { declareArguments, expandPairs, expandRequired } from "../builder/interpreter/settings.ts";
import { type Arguments, lookUp, setEnvironment } from "../builder/interpreter/state.ts";
import { undefinedVariables } from "../builder/interpreter/undefined-variables.ts";
import { leftOutMount, skippedInstruction } from "../builder/interpreter/warnings.ts";
import type { Instruction, WorkdirInstruction } from "../dockerfile/instruction.ts";
import type { Lookup } from "../dockerfile/words/words.ts";
import { knowledgeOf, updateUnknown } from "./known.ts";
import { planCopying } from "./plan-copy.ts";
import type { PlanJob, PlannedStage } from "./plan-state.ts";

/** What is taken for the image's own variables; a check does not look into it. */
const imageVariables = new Map([["PATH", defaultPath]]);

/** What an instruction makes of its stage, and what is to be said of it. */
export async function planInStage(
  instruction: Exclude<Instruction, { name: "FROM" }>,
  stage: PlannedStage,
  globals: Arguments,
  job: PlanJob,
): Promise<PlannedStage> {
  const { escape, buildArgs } = job;
  const lookup = lookUp(stage.env, stage.args, imageVariables);
  const isKnown = knowledgeOf(stage, escape);
  if (!ofTheShell.has(instruction.name)) {
    const scope = { ...stage, inherited: undefined, globals };
    for (const { rule, message } of undefinedVariables(instruction, scope, escape))
      job.warn(rule, message, instruction);
  }
  switch (instruction.name) {
    case "RUN":
      for (const mount of instruction.mounts.filter(canBeLeftOut)) {
        const { rule, message } = leftOutMount(mount);
        job.warn(rule, message, instruction);
      }
      return { ...stage, staged: new Map() };
    case "COPY":
    case "ADD":
      return planCopying(instruction, stage, lookup, job);
    case "WORKDIR":
      return isKnown(instruction.path)
        ? planWorkdir(instruction, stage, lookup, job)
        : { ...stage, workdir: undefined, workdirIsSet: true, workdirIsAssumed: false };
    case "ENV": {
      const unknown = updateUnknown(stage.unknown, instruction.pairs, isKnown);
      return { ...setEnvironment(stage, expandPairs(instruction, lookup, escape)), unknown };
    }
    case "ARG": {
      const declared = { ...stage, inherited: imageVariables, globals };
      const given = instruction.declarations.filter(({ key }) => !buildArgs.has(key));
      return {
        ...stage,
        args: declareArguments(instruction, declared, buildArgs, escape),
        unknown: updateUnknown(stage.unknown, given, isKnown),
      };
    }
    case "USER":
      if (isKnown(instruction.user)) expandRequired(instruction, instruction.user, lookup, escape);
      return stage;
    default: {
      const { rule, message } = job.explain(skippedInstruction(instruction.name));
      job.warn(rule, message, instruction);
      return stage;
    }
  }
}

function planWorkdir(
  instruction: WorkdirInstruction,
  stage: PlannedStage,
  lookup: Lookup,
  job: PlanJob,
): PlannedStage {
  const path = expandRequired(instruction, instruction.path, lookup, job.escape);
  const isAbsolute = path.startsWith("/");
  if (!stage.workdirIsSet && !isAbsolute) {
    const message = `Relative workdir ${JSON.stringify(path)} can have unexpected results if the base image changes`;
    job.warn("WorkdirRelativePath", message, instruction);
  }
  const isLost = stage.workdir === undefined && !isAbsolute;
  const workdir = isLost ? undefined : pathInImage(stage.workdir ?? "/", path);
  const workdirIsAssumed = stage.workdirIsAssumed && !isAbsolute;
  return { ...stage, workdir, workdirIsSet: true, workdirIsAssumed };
}

/** Instructions whose variables are replaced when a command runs, and by the shell. */
const ofTheShell: ReadonlySet<string> = new Set([
  "RUN",
  "CMD",
  "ENTRYPOINT",
  "HEALTHCHECK",
  "ONBUILD",
  "SHELL",
  // Docker replaces its variables, but says nothing of undefined ones.
  "EXPOSE",
]);
