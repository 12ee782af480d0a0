import { isRunning, type RunningProgram } from "../../programs/helper.ts";
import { endProcesses } from "../system/helper-process.ts";

/** Ends a sandbox at any point of its life, when the request's signal is aborted or its time is over. */
export class KillSwitch {
  readonly #signal: AbortSignal;
  readonly #onUse: () => void;
  #helper: RunningProgram | undefined;
  timedOut = false;
  used = false;

  constructor(signal: AbortSignal, onUse: () => void) {
    this.#signal = signal;
    this.#onUse = onUse;
    signal.addEventListener("abort", this.end);
  }

  arm(helper: RunningProgram): void {
    this.#helper = helper;
    if (this.#signal.aborted) this.end();
  }

  timeOut(): void {
    this.timedOut = true;
    this.end();
  }

  /** Ends the sandbox. The caller records the reason. */
  readonly end = () => {
    this.used = true;
    this.#onUse();
    this.#endHelper();
  };

  /** Ends the helper, even if the setup of the sandbox has failed halfway. */
  disarm(): void {
    this.#signal.removeEventListener("abort", this.end);
    this.#endHelper();
  }

  #endHelper(): void {
    if (this.#helper !== undefined && isRunning(this.#helper)) endProcesses(this.#helper.pid);
  }
}
