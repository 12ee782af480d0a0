import { identify, isAlive } from "../../../process-identity.ts";
import type { Layout } from "../../layout.ts";
import type { PrivateNetwork } from "../../network/private-network.ts";
import { endHelper, type Helper } from "../../system/helper.ts";
import type { Environment } from "../../system/programs.ts";
import { startNamespace } from "./mount-namespace.ts";

/**
 * The namespaces of commands. From the second command of an engine on, those of the next one are made while the one before
 * runs: to start four programs one after the other takes a tenth of what a short command takes in all.
 */
export class NamespaceSupply {
  readonly #host: { layout: Layout; environment: Environment };
  /** Waits to be told what to mount, with the network that it has been given. */
  #waiting: { helper: Helper; identity: string; network: PrivateNetwork | undefined } | undefined;
  #taken = 0;

  constructor(host: { layout: Layout; environment: Environment }) {
    this.#host = host;
  }

  /** `terminal`: see `startNamespace`; such a command can't be waited for. */
  take(network: PrivateNetwork | undefined, terminal?: number): Helper {
    if (terminal !== undefined) return this.#start(network, terminal);
    this.#taken++;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined && waiting.network === network && isAlive(waiting.identity))
      return waiting.helper;
    if (waiting !== undefined) endHelper(waiting.helper);
    return this.#start(network);
  }

  /** Call it while a command runs. */
  prepare(network: PrivateNetwork | undefined): void {
    if (this.#taken < 2 || this.#waiting !== undefined) return;
    const helper = this.#start(network);
    // It keeps this process from ending as little as what it waits for.
    helper.unref();
    this.#waiting = { helper, identity: identify(helper.pid), network };
  }

  async close(): Promise<void> {
    const helper = this.#waiting?.helper;
    this.#waiting = undefined;
    if (helper === undefined) return;
    helper.ref();
    endHelper(helper);
    await helper.exited;
  }

  #start(network: PrivateNetwork | undefined, terminal?: number): Helper {
    const { layout, environment } = this.#host;
    const descriptor = network?.namespaces;
    return startNamespace(layout, environment, { forCommand: true, descriptor, terminal });
  }
}
