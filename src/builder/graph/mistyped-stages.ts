import type { Dockerfile, LineRange } from "../../dockerfile/instruction.ts";
import { nearest } from "../../suggest.ts";
import type { BuildWarning } from "../state/warnings.ts";
import { graphOf, type StageInputs } from "./stage-references.ts";
import { staticGlobals } from "./static-globals.ts";

/** Warns of each `--from` that names an image, but is nearly the name of a stage, before a registry is asked for it. */
export function mistypedStages(
  dockerfile: Dockerfile,
  { dialect, buildArgs, target, contexts }: StageInputs,
): (BuildWarning & { range: LineRange })[] {
  const names = dockerfile.stages.flatMap(({ name }) => name ?? []);
  if (names.length === 0) return [];
  const graph = graphOf(dockerfile, staticGlobals(dockerfile, { buildArgs, target }), contexts);
  return graph.nodes.flatMap(({ edges }) =>
    edges.flatMap(({ kind, reference, target, instruction }) => {
      const isSkipped = kind === "from" || (kind === "copy" && !dialect.copiesFromImages);
      if (isSkipped || target.kind !== "image" || !/^[\w-]+$/.test(reference)) return [];
      const meant = nearest(reference, names);
      // A stage that is defined later is an error of its own.
      if (meant === undefined || meant === reference.toLowerCase()) return [];
      const message = `--from=${reference} names no stage, so it is an image; did you mean the stage ${meant}?`;
      return [{ rule: "MistypedStage", message, range: instruction.range }];
    }),
  );
}
