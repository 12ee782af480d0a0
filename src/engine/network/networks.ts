import type { Clock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import type { NetworkMode } from "../../service/wire/instance.ts";
import { errorCode } from "../../system-error.ts";
import type { Environment } from "../system/programs.ts";
import { findAddresses, privateResolvConf, readHostNetwork, readResolvConf } from "./host-network.ts";
import { type PrivateNetwork, startPrivateNetwork } from "./private-network.ts";

/** A sandbox's view of its network. */
export type SandboxNetwork =
  /** A network behind two user-mode network stacks, shared with the other sandboxes of this process. */
  | { kind: "private"; resolvConf: string }
  /** Its own loopback, and nothing else. */
  | { kind: "none"; resolvConf: string }
  /** The machine's network, with its loopback and its abstract sockets. */
  | { kind: "host"; resolvConf: string };

/** A network that may not be ready yet. */
export interface ProvidedNetwork {
  /** `undefined` if sandboxes don't share the network. */
  shared: PrivateNetwork | undefined;
  /**
   * Resolves to the machine's network, after one warning, if a private one can't be made. Rejects only if too many files are open;
   * callers may ignore it.
   */
  ready: Promise<SandboxNetwork>;
}

/**
 * The networks of this process's sandboxes. The private one is made when a sandbox first needs it, shared by later ones, and ends
 * with this process in any case.
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

  /** Starts making the network that `provide` waits for. Throws if too many files are open. */
  start(mode: NetworkMode): PrivateNetwork | undefined {
    const network = mode === "default" ? this.#share() : undefined;
    // Callers that wait for the network get its error.
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
    const { nameServers } = network;
    const ready = network.ready.then(
      (): SandboxNetwork => ({ kind: "private", resolvConf: privateResolvConf(resolvConf, nameServers) }),
      (error: unknown) => {
        this.#giveUp(error);
        return host;
      },
    );
    // A sandbox that fails in another way doesn't wait for it.
    ready.catch(() => undefined);
    return { shared: network, ready };
  }

  async close(): Promise<void> {
    await this.#private?.close();
  }

  #share(): PrivateNetwork | undefined {
    if (this.#hasFailed || this.#private !== undefined) return this.#private;
    try {
      const network = startPrivateNetwork(findAddresses(readHostNetwork()), this.#environment, this.#clock);
      // A network that fails is replaced for the next sandbox.
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
    // A lack of descriptors passes, and is no reason to open the machine's network to commands.
    if (areTooManyFilesOpen(error)) throw error;
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#warn(
      `RUN steps use this machine's network, including its loopback services: ${messageOf(error)} (\`bough doctor\` says how to fix it)`,
    );
  }
}

function areTooManyFilesOpen(error: unknown): boolean {
  return ["EMFILE", "ENFILE"].includes(errorCode(error) ?? "");
}
