import type { PrivateNetwork } from "./private-network.ts";

/** The maximum number of networks that are kept for later commands. */
const maxIdle = 4;

/**
 * Private networks, each for one sandbox at a time: a command has raw packets, as in Docker, and ports of its own, and must not read
 * or take those of another. Commands one after the other use the same one.
 */
export class NetworkPool {
  readonly #make: () => PrivateNetwork;
  readonly #all = new Set<PrivateNetwork>();
  #idle: PrivateNetwork[] = [];

  constructor(make: () => PrivateNetwork) {
    this.#make = make;
  }

  /** Starts making a network that `take` returns, unless there is one. Throws if too many files are open. */
  prepare(): PrivateNetwork {
    const [idle] = this.#idle;
    if (idle !== undefined) return idle;
    const network = this.#make();
    this.#all.add(network);
    this.#idle.push(network);
    // Callers that wait for the network get its error.
    network.ready.catch(() => undefined);
    network.broken.then(() => this.#forget(network));
    return network;
  }

  take(): PrivateNetwork {
    const network = this.prepare();
    this.#idle = this.#idle.filter((other) => other !== network);
    return network;
  }

  /** Takes a network back. Ends it if a process may be left in it. */
  release(network: PrivateNetwork, isEmpty: boolean): void {
    if (!this.#all.has(network)) return;
    if (isEmpty && this.#idle.length < maxIdle) this.#idle.push(network);
    else network.close().catch(() => undefined);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((network) => network.close()));
  }

  #forget(network: PrivateNetwork): void {
    this.#all.delete(network);
    this.#idle = this.#idle.filter((other) => other !== network);
  }
}
