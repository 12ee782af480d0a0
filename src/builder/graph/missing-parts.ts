import type { Dockerfile, Stage } from "../../dockerfile/instruction.ts";
import type { MissingPart } from "../state/warnings.ts";
import { findStage } from "./build-graph.ts";

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
