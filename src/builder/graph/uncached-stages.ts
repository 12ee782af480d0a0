/** The stages of `--no-cache-filter`. */
import type { Dockerfile, Stage } from "../../dockerfile/instruction.ts";
import { nearest } from "../../suggest.ts";
import type { BuildWarning } from "../state/warnings.ts";
import { findStage } from "./build-graph.ts";

/** Returns the indexes of the stages that the option names. Several stages may have the same name. */
export function uncachedStages({ stages }: Dockerfile, given: readonly string[]): ReadonlySet<number> {
  return new Set(given.flatMap((name) => stagesNamed(stages, name)).map(({ index }) => index));
}

/** Warns of each name that no stage has. BuildKit ignores it silently, so that one option serves several Dockerfiles. */
export function unknownUncachedStages(
  { stages, path }: Pick<Dockerfile, "stages" | "path">,
  given: readonly string[],
): BuildWarning[] {
  const names = stages.flatMap(({ name }) => name ?? []);
  return given
    .filter((name) => stagesNamed(stages, name).length === 0)
    .map((name) => {
      const meant = nearest(name, names);
      const advice = meant === undefined ? "" : ` (did you mean ${meant}?)`;
      return {
        rule: "UnusedNoCacheFilter",
        message: `--no-cache-filter ${name} has no effect: ${path} has no such stage${advice}`,
      };
    });
}

function stagesNamed(stages: readonly Stage[], given: string): Stage[] {
  const name = given.toLowerCase();
  const named = stages.filter((stage) => stage.name === name);
  const numbered = named.length > 0 ? undefined : findStage(stages, given);
  return numbered === undefined ? named : [numbered];
}
