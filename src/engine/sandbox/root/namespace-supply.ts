import { identify, isAlive } from "../../../process-identity.ts";
import type { Layout } from "../../layout.ts";
import type { PrivateNetwork } from "../../network/private-network.ts";
import { endHelper, type Helper } from "../../system/helper.ts";
import type { Environment } from "../../system/programs.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { startNamespace } from "./mount-namespace.ts";

/** What a namespace is made for. */
interface NextCommand {
  /** That it has been given. */
  network: PrivateNetwork | undefined;
  runtime: Runtime;
}

/**
 * The namespaces of commands. From the second command of an engine on, those of the next one are made while the one before
 * runs: to start four programs one after the other takes a tenth of what a short command takes in all.
 */
export class NamespaceSupply {
  readonly #host: { layout: Layout; environment: Environment };
  /** Waits to be told what to mount. */
  #waiting: { helper: Helper; identity: string; next: NextCommand } | undefined;
  #taken = 0;

  constructor(host: { layout: Layout; environment: Environment }) {
    this.#host = host;
  }

  /** `terminal`: see `startNamespace`; such a command can't be waited for. */
  take(next: NextCommand, terminal?: number): Helper {
    if (terminal !== undefined) return this.#start(next, terminal);
    this.#taken++;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined && isSame(waiting.next, next) && isAlive(waiting.identity))
      return waiting.helper;
    if (waiting !== undefined) end(waiting.helper);
    return this.#start(next);
  }

  /** Call it while a command runs. */
  prepare(next: NextCommand): void {
    if (this.#taken < 2 || this.#waiting !== undefined) return;
    const helper = this.#start(next);
    // It keeps this process from ending as little as what it waits for.
    helper.unref();
    this.#waiting = { helper, identity: identify(helper.pid), next };
  }

  async close(): Promise<void> {
    const helper = this.#waiting?.helper;
    this.#waiting = undefined;
    if (helper === undefined) return;
    helper.ref();
    end(helper);
    await helper.exited;
  }

  #start({ network, runtime }: NextCommand, terminal?: number): Helper {
    const { layout, environment } = this.#host;
    const descriptor = network?.namespaces;
    const crun = runtime.kind === "crun" ? runtime : undefined;
    return startNamespace(layout, environment, { forCommand: true, descriptor, terminal, crun });
  }
}

function isSame(one: NextCommand, other: NextCommand): boolean {
  return one.network === other.network && one.runtime.kind === other.runtime.kind;
}

function end(helper: Helper): void {
  endHelper(helper);
  helper.discard?.();
}
