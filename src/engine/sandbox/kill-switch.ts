import type { Subprocess } from "bun";
import type { Layout } from "../layout.ts";
import { killContainer } from "./containers.ts";

/** Ends a sandbox at whatever point it has reached: when the request's signal says so, or its time is over. */
export class KillSwitch {
  readonly #layout: Layout;
  readonly #request: { id: string; signal: AbortSignal };
  #helper: Subprocess | undefined;
  timedOut = false;
  used = false;

  constructor(layout: Layout, request: { id: string; signal: AbortSignal }) {
    this.#layout = layout;
    this.#request = request;
    request.signal.addEventListener("abort", this.#kill);
  }

  arm(helper: Subprocess): void {
    this.#helper = helper;
    if (this.#request.signal.aborted) this.#kill();
  }

  timeOut(): void {
    this.timedOut = true;
    this.#kill();
  }

  /** Ends the helper in any case, at whatever point the set-up broke off. */
  disarm(): void {
    this.#request.signal.removeEventListener("abort", this.#kill);
    if (this.#helper !== undefined && isRunning(this.#helper)) killSession(this.#helper.pid);
  }

  readonly #kill = () => {
    this.used = true;
    if (this.#helper === undefined || !isRunning(this.#helper)) return;
    // With its first process gone, runc sees to the rest. Before there is one, runc itself has to go.
    if (!killContainer(this.#layout, this.#request.id)) killSession(this.#helper.pid);
  };
}

/** The helper leads a session of its own. */
function killSession(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It ended meanwhile.
  }
}

function isRunning(helper: Subprocess): boolean {
  return helper.exitCode === null && helper.signalCode === null;
}
