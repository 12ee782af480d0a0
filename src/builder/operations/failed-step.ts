import { BoughError } from "../../errors.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { LentFile } from "../../service/wire/file.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { Layer } from "../cache/layer-cache.ts";
import { layerBranch } from "../cache/layer-cache.ts";

/** A step as its command found it: what is needed to run another one in its place. */
export interface StepPlace {
  /** What was sent for it, command included. */
  request: InstanceRequest;
  /** The user as `processFields` takes it. */
  user: string | undefined;
  /** The files that were lent for it. */
  lent: Iterable<LentFile> | undefined;
  /** Its `--mount` was made by a script around its command, and is not in the request. */
  lacksMounts: boolean;
}

/** A RUN that was run and failed: what was before it can be stepped into. */
export class FailedStepError extends BoughError {
  override readonly name = "FailedStepError";
  /** The branch of the layer that the step began with. */
  readonly branch: string;
  /** `undefined`: the operation was begun by an earlier build. */
  readonly place: StepPlace | undefined;
  readonly operation: string;
  /** What the command has written, as an image, where the service keeps it. */
  readonly result: string | undefined;
  /** True if the command's output says that the disk is full. */
  readonly saysDiskFull: boolean;

  /** `layer`: the stage's, with its configuration. */
  constructor(
    error: BoughError,
    place: StepPlace | undefined,
    layer: Layer,
    outcome: OperationOutcome & { saysDiskFull?: boolean },
  ) {
    super(error.message, {
      kind: error.kind,
      cause: error,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
    });
    this.branch = layerBranch(layer.hash);
    this.place = place;
    this.operation = outcome.operation;
    this.result = outcome.image;
    this.saysDiskFull = outcome.saysDiskFull === true;
  }
}
