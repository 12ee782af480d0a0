import { BoughError } from "../../errors.ts";

/** What the signal of a stage is aborted with once another stage has failed: the build's error is that one's. */
export class AbandonedError extends BoughError {
  override readonly name = "AbandonedError";

  constructor() {
    super("another stage has failed", { kind: "interrupted" });
  }
}

/** What the last events of a step say of why it ends: nothing, unless another stage has failed. */
export function abandonmentOf({ aborted, reason }: AbortSignal): { abandoned?: true } {
  return aborted && reason instanceof AbandonedError ? { abandoned: true } : {};
}
