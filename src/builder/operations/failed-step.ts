import { BoughError } from "../../errors.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import { layerBranch } from "../cache/layer-cache.ts";
import type { Layer } from "../state/layer.ts";
import type { FollowedOutcome } from "./operation.ts";

/** The environment of a step's command, in which another command can be run. */
export interface StepEnvironment {
  /** The request sent for it, including its command. */
  request: InstanceRequest;
  /** The user, in the form that `processFields` takes. */
  user: string | undefined;
  /** True if its `--mount` was made by a script around its command and is not in the request. */
  lacksMounts: boolean;
}

/** A RUN whose command failed. A command can be run in the state before it. */
export class FailedStepError extends BoughError {
  override readonly name = "FailedStepError";
  /** The branch of the layer that the step began with. */
  readonly branch: string;
  /** `undefined`: the operation was begun by an earlier build. */
  readonly place: StepEnvironment | undefined;
  readonly operation: string;
  /** The image with the files that the command has written, if the service keeps it. */
  readonly result: string | undefined;
  /** True if the command's output says that the disk is full. */
  readonly reportsDiskFull: boolean;

  /** `layer`: the stage's layer, with its configuration. */
  constructor(error: BoughError, place: StepEnvironment | undefined, layer: Layer, outcome: FollowedOutcome) {
    super(error.wording, {
      kind: error.kind,
      cause: error,
      hint: error.hint,
    });
    this.branch = layerBranch(layer.hash);
    this.place = place;
    this.operation = outcome.operation;
    this.result = outcome.image;
    this.reportsDiskFull = outcome.reportsDiskFull === true;
  }
}
