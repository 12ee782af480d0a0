import type { Clock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import type { NetworkMode } from "../../service/types.ts";
import type { Environment } from "../system/programs.ts";
import { findAddresses, readMachineNetwork } from "./machine-network.ts";
import { type PrivateNetwork, startPrivateNetwork } from "./private-network.ts";
import { privateResolvConf } from "./resolv-conf.ts";

/** What a sandbox gets to see of any network. */
export type SandboxNetwork =
  /** Behind two user-mode network stacks; `namespace` is an open file of it. */
  | { kind: "private"; namespace: number; resolvConf: string }
  /** A loopback of its own, and nothing else. */
  | { kind: "none"; resolvConf: string }
  /** The machine's, with its loopback and its abstract sockets. */
  | { kind: "machine"; resolvConf: string };

/**
 * The networks of this process's sandboxes. The private one is made when a sandbox first needs it, shared by those that
 * follow, and gone with this process, however that ends.
 */
export class Networks {
  readonly #environment: Environment;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  #private: Promise<PrivateNetwork | undefined> | undefined;
  #hasWarned = false;

  constructor(options: { environment: Environment; clock: Clock; warn: (message: string) => void }) {
    this.#environment = options.environment;
    this.#clock = options.clock;
    this.#warn = options.warn;
  }

  /** Never rejects: where a private network can't be made, a sandbox has the machine's, and a warning says so once. */
  async provide(mode: NetworkMode): Promise<SandboxNetwork> {
    if (mode === "none") return { kind: "none", resolvConf: "" };
    const { resolvConf } = readMachineNetwork();
    const network = mode === "default" ? await this.#share() : undefined;
    if (network === undefined) return { kind: "machine", resolvConf };
    return {
      kind: "private",
      namespace: network.namespace,
      resolvConf: privateResolvConf(resolvConf, network.nameServer),
    };
  }

  async close(): Promise<void> {
    await (await this.#private)?.close();
  }

  #share(): Promise<PrivateNetwork | undefined> {
    this.#private ??= this.#start();
    return this.#private;
  }

  async #start(): Promise<PrivateNetwork | undefined> {
    try {
      const addresses = findAddresses(readMachineNetwork());
      const network = await startPrivateNetwork(addresses, this.#environment, this.#clock);
      // One that breaks down is replaced for the next sandbox.
      network.ended.then(() => {
        this.#private = undefined;
      });
      return network;
    } catch (error) {
      if (!this.#hasWarned) {
        this.#warn(
          `RUN steps have this machine's network, its loopback services included: ${messageOf(error)} (\`bough doctor\` says how to mend it)`,
        );
      }
      this.#hasWarned = true;
      return undefined;
    }
  }
}
