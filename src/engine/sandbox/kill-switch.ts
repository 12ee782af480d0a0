import { isRunning, type Running } from "../../programs/helper.ts";
import { endProcesses } from "../system/helper-process.ts";

/** Ends a sandbox at any point of its life, when the request's signal is aborted or its time is over. */
export class KillSwitch {
  readonly #signal: AbortSignal;
  readonly #onUse: () => void;
  #helper: Running | undefined;
  timedOut = false;
  used = false;

  constructor(signal: AbortSignal, onUse: () => void) {
    this.#signal = signal;
    this.#onUse = onUse;
    signal.addEventListener("abort", this.#kill);
  }

  arm(helper: Running): void {
    this.#helper = helper;
    if (this.#signal.aborted) this.#kill();
  }

  timeOut(): void {
    this.timedOut = true;
    this.#kill();
  }

  /** Ends the sandbox for another reason, which the caller records. */
  end(): void {
    this.#kill();
  }

  /** Ends the helper in any case, wherever the setup stopped. */
  disarm(): void {
    this.#signal.removeEventListener("abort", this.#kill);
    this.#end();
  }

  readonly #kill = () => {
    this.used = true;
    this.#onUse();
    this.#end();
  };

  #end(): void {
    if (this.#helper !== undefined && isRunning(this.#helper)) endProcesses(this.#helper.pid);
  }
}
