import type { Dockerfile, Instruction } from "../../dockerfile/instruction.ts";
import type { Dialect } from "../dialect.ts";

/** Returns the instructions of a Dockerfile that make a layer where the service makes layers of files, in order. */
export function layerMakers({ instructions }: Dockerfile, dialect: Dialect): Instruction[] {
  return instructions.filter(
    (instruction) =>
      ["ADD", "RUN", "WORKDIR"].includes(instruction.name) ||
      (instruction.name === "COPY" && (dialect.copiesFromImages || instruction.from === undefined)),
  );
}
