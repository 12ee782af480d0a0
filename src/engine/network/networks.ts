import type { Clock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import type { NetworkMode } from "../../service/wire/instance.ts";
import type { Environment } from "../system/programs.ts";
import { findAddresses, privateResolvConf, readHostNetwork, readResolvConf } from "./host-network.ts";
import { type PrivateNetwork, startPrivateNetwork } from "./private-network.ts";

/** What a sandbox gets to see of any network. */
export type SandboxNetwork =
  /** One behind two user-mode network stacks, shared with the other sandboxes of this process. */
  | { kind: "private"; resolvConf: string }
  /** A loopback of its own, and nothing else. */
  | { kind: "none"; resolvConf: string }
  /** The machine's, with its loopback and its abstract sockets. */
  | { kind: "host"; resolvConf: string };

/** A network on its way. */
export interface ProvidedNetwork {
  /** Undefined where it is none that sandboxes share. */
  shared: PrivateNetwork | undefined;
  /** Does not reject: where a private network can't be made, it is the machine's, and a warning has said so once. */
  ready: Promise<SandboxNetwork>;
}

/**
 * The networks of this process's sandboxes. The private one is made when a sandbox first needs it, shared by those that
 * follow, and gone with this process, however that ends.
 */
export class Networks {
  readonly #environment: Environment;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  #private: PrivateNetwork | undefined;
  #hasFailed = false;

  constructor(options: { environment: Environment; clock: Clock; warn: (message: string) => void }) {
    this.#environment = options.environment;
    this.#clock = options.clock;
    this.#warn = options.warn;
  }

  /** Begins to make what `provide` waits for. */
  start(mode: NetworkMode): PrivateNetwork | undefined {
    const network = mode === "default" ? this.#share() : undefined;
    // Whoever waits for it is told what is wrong with it.
    network?.ready.catch(() => undefined);
    return network;
  }

  provide(mode: NetworkMode): ProvidedNetwork {
    if (mode === "none")
      return { shared: undefined, ready: Promise.resolve({ kind: "none", resolvConf: "" }) };
    const resolvConf = readResolvConf();
    const host: SandboxNetwork = { kind: "host", resolvConf };
    const network = this.start(mode);
    if (network === undefined) return { shared: undefined, ready: Promise.resolve(host) };
    const { nameServer } = network;
    const ready = network.ready.then(
      (): SandboxNetwork => ({ kind: "private", resolvConf: privateResolvConf(resolvConf, nameServer) }),
      (error: unknown) => {
        this.#giveUp(error);
        return host;
      },
    );
    return { shared: network, ready };
  }

  async close(): Promise<void> {
    await this.#private?.close();
  }

  #share(): PrivateNetwork | undefined {
    if (this.#hasFailed || this.#private !== undefined) return this.#private;
    try {
      const network = startPrivateNetwork(findAddresses(readHostNetwork()), this.#environment, this.#clock);
      // One that breaks down is replaced for the next sandbox.
      network.broken.then(() => {
        if (this.#private === network) this.#private = undefined;
      });
      this.#private = network;
    } catch (error) {
      this.#giveUp(error);
    }
    return this.#private;
  }

  #giveUp(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#warn(
      `RUN steps have this machine's network, its loopback services included: ${messageOf(error)} (\`bough doctor\` says how to mend it)`,
    );
  }
}
