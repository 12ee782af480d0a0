import type { StagedTypes } from "../builder/copy/destination.ts";
import type { StageScope } from "../builder/state/scope.ts";

/** A stage without an image. */
export interface DryStage extends StageScope {
  /** `undefined` if it depends on a variable of the image. */
  workdir: string | undefined;
  /** True after any WORKDIR. */
  workdirIsSet: boolean;
  /** True if no WORKDIR was absolute: relative ones are resolved from `/`, although the image may have another WORKDIR. */
  workdirIsAssumed: boolean;
  staged: StagedTypes;
}

export function startDryStage(): DryStage {
  const words = { env: new Map(), args: new Map(), inherited: undefined, unknown: new Map(), config: {} };
  const place = { workdir: "/", workdirIsSet: false, workdirIsAssumed: true, staged: new Map() };
  return { ...words, ...place };
}
