import type { Dockerfile, Instruction, Stage } from "../../dockerfile/instruction.ts";
import { findContext, type NamedContexts } from "../contexts/named-context.ts";
import { findStage } from "./build-graph.ts";

/**
 * Replaces each stage that has the name of a context, as BuildKit does: the stage starts FROM the context and has no other
 * instructions. Every `--from` that means such a stage, also by its number, then has the context's name.
 */
export function overrideStages(dockerfile: Dockerfile, contexts: NamedContexts): Dockerfile {
  const isReplaced = ({ name }: Stage) => name !== undefined && findContext(name, contexts) !== undefined;
  if (!dockerfile.stages.some(isReplaced)) return dockerfile;
  const nameIn = (from: string): string => {
    const meant = findStage(dockerfile.stages, from);
    return meant?.name !== undefined && isReplaced(meant) ? meant.name : from;
  };
  const stages = dockerfile.stages.map((stage): Stage => {
    const { name, from, instructions } = stage;
    return name !== undefined && isReplaced(stage)
      ? { ...stage, from: { ...from, image: name }, instructions: [] }
      : { ...stage, instructions: instructions.map((instruction) => renameSources(instruction, nameIn)) };
  });
  const all = stages.flatMap(({ from, instructions }): Instruction[] => [from, ...instructions]);
  return { ...dockerfile, stages, instructions: [...dockerfile.globals, ...all] };
}

/** Replaces the names after `--from` and in mounts, also those of ONBUILD. */
function renameSources(instruction: Instruction, nameIn: (from: string) => string): Instruction {
  switch (instruction.name) {
    case "COPY":
      return instruction.from === undefined
        ? instruction
        : { ...instruction, from: nameIn(instruction.from) };
    case "RUN":
      return instruction.mounts.length === 0
        ? instruction
        : {
            ...instruction,
            mounts: instruction.mounts.map((mount) =>
              mount.from === undefined ? mount : { ...mount, from: nameIn(mount.from) },
            ),
          };
    case "ONBUILD":
      return instruction.trigger === undefined
        ? instruction
        : { ...instruction, trigger: renameSources(instruction.trigger, nameIn) };
    default:
      return instruction;
  }
}
