import type { Dockerfile, Instruction } from "../../dockerfile/instruction.ts";
import type { BuildMode } from "../job.ts";

/** Returns the instructions of a Dockerfile that make a layer, in order. */
export function layerMakers({ instructions }: Dockerfile, mode: BuildMode): Instruction[] {
  return instructions.filter(
    (instruction) =>
      instruction.name === "RUN" ||
      (mode === "docker" && instruction.name === "COPY" && instruction.from !== undefined),
  );
}
