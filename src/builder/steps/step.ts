import type { Dockerfile, Instruction } from "../../dockerfile/instruction.ts";
import type { HistoryKind } from "../../store/sessions.ts";
import type { Explanation } from "../cache/step-difference.ts";
import type { StepKey } from "../cache/step-key.ts";
import type { Dialect } from "../dialect.ts";
import { proxiesAsDocker } from "../docker/variables.ts";
import type { AskedBuild, BuildJob } from "../job.ts";
import type { EvictableImage, Layer } from "../state/layer.ts";
import { environmentOf, predefinedArguments } from "../state/scope.ts";
import type { StageState } from "../state/state.ts";

/**
 * A step that makes a layer: what the layer depends on, and how it is made. Each kind of step is a function that returns one, in a file of
 * its own; `find-or-make.ts` knows no kinds.
 */
export interface Step {
  /** The instruction's title, for the log. */
  title: string;
  /** The line in the Dockerfile. */
  line: number;
  /** The step's number among those that make a layer. */
  ordinal: number;
  key: StepKey;
  /** Other layers that it takes files from. */
  sources: readonly EvictableImage[];
  /** The kind of the layer's entry in the session's history. */
  history: HistoryKind;
  /** Finds a layer that exists. By default, one of the key's hash, if the build uses the cache. */
  find?(): Promise<Layer | undefined>;
  /** Completes the reason of a miss with what only this kind of step can find out. */
  refine?(explanation: Explanation): Promise<Explanation>;
  /** Makes the layer of this chain hash. */
  make(hash: string, build: BuildJob): Promise<Layer>;
}

/** Returns the instructions of a Dockerfile that make a layer where the service makes layers of files, in order. */
export function layerMakers({ instructions }: Dockerfile, dialect: Dialect): Instruction[] {
  return instructions.filter(
    (instruction) =>
      ["ADD", "RUN", "WORKDIR"].includes(instruction.name) ||
      (instruction.name === "COPY" && (dialect.copiesFromImages || instruction.from === undefined)),
  );
}

/** Returns the variables of a command of this stage. */
export function environmentFor(
  stage: StageState,
  { dialect, buildArgs }: Pick<AskedBuild, "dialect" | "buildArgs">,
): Record<string, string> {
  const proxies = predefinedArguments(buildArgs);
  return dialect.hasDockersVariables
    ? { ...environmentOf(stage, new Map()), ...proxiesAsDocker(proxies) }
    : environmentOf(stage, proxies);
}
