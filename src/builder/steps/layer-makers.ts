import type { Dockerfile, Instruction } from "../../dockerfile/instruction.ts";
import type { BuildMode } from "../job.ts";

/** Returns the instructions of a Dockerfile that make a layer where the service makes layers of files, in order. */
export function layerMakers({ instructions }: Dockerfile, mode: BuildMode): Instruction[] {
  return instructions.filter(
    (instruction) =>
      ["ADD", "RUN", "WORKDIR"].includes(instruction.name) ||
      (instruction.name === "COPY" && (mode === "docker" || instruction.from === undefined)),
  );
}
