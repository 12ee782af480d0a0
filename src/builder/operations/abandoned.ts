import { BoughError } from "../../errors.ts";

/** The abort reason of a stage's signal after another stage has failed. The build's error is that of the failed stage. */
export class AbandonedError extends BoughError {
  override readonly name = "AbandonedError";

  constructor() {
    super("another stage has failed", { kind: "interrupted" });
  }
}

/** Returns the field for a step's last events that says whether the step ends because another stage has failed. */
export function abandonmentOf({ aborted, reason }: AbortSignal): { abandoned?: true } {
  return aborted && reason instanceof AbandonedError ? { abandoned: true } : {};
}
