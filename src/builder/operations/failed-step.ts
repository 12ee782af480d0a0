import { BoughError } from "../../errors.ts";
import type { Layer } from "../cache/layer-cache.ts";
import { layerBranch } from "../cache/layer-cache.ts";
import type { StageState } from "../interpreter/state.ts";

/** A RUN that was run and failed: what is before it can be stepped into. */
export class FailedStepError extends BoughError {
  override readonly name = "FailedStepError";
  /** The branch of the layer that the step began with. */
  readonly branch: string;
  /** COPY and ADD have staged files for the step, which that layer does not have yet. */
  readonly hasStaged: boolean;

  /** `layer`: the stage's, with its configuration. */
  constructor(error: BoughError, stage: Pick<StageState, "staged">, layer: Layer) {
    super(error.message, {
      kind: error.kind,
      cause: error,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
    });
    this.branch = layerBranch(layer.hash);
    this.hasStaged = stage.staged.size > 0;
  }
}
