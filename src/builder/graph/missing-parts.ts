import type { Dockerfile, Stage } from "../../dockerfile/instruction.ts";
import { findStage } from "./build-graph.ts";

/** A part of Docker's image that a build without `--docker` leaves out. */
export interface MissingPart {
  /** An instruction such as `CMD`, or files. */
  what: string;
  line: number;
}

/**
 * Returns what the image of a build without `--docker` lacks, as far as the Dockerfile alone tells. Only the last stage and
 * those that it starts from count: others reach the image only through a `COPY --from`, which counts itself.
 */
export function missingParts({ stages }: Pick<Dockerfile, "stages">): MissingPart[] {
  return stagesOfImage(stages)
    .flatMap(({ instructions }) => instructions)
    .flatMap((instruction) => {
      const { name, range } = instruction;
      if (name === "COPY" && instruction.from !== undefined)
        return [{ what: "COPY --from", line: range.start }];
      return name === "CMD" || name === "ENTRYPOINT" || name === "SHELL"
        ? [{ what: name, line: range.start }]
        : [];
    });
}

/** Returns the last stage, and the stages that it starts from. */
export function stagesOfImage(stages: readonly Stage[]): Stage[] {
  const found: Stage[] = [];
  let stage = stages.at(-1);
  while (stage !== undefined) {
    found.unshift(stage);
    stage = findStage(stages.slice(0, stage.index), stage.from.image);
  }
  return found;
}

/** `COPY --from (lines 3, 14), ENTRYPOINT (line 18) and CMD (line 19)` */
export function describeMissing(parts: readonly MissingPart[]): string {
  const named = [...Map.groupBy(parts, ({ what }) => what)].map(([what, all]) => {
    const lines = [...new Set(all.map(({ line }) => line))];
    return `${what} (${lines.length === 1 ? "line" : "lines"} ${lines.join(", ")})`;
  });
  const last = named.pop() ?? "";
  return named.length === 0 ? last : `${named.join(", ")} and ${last}`;
}
