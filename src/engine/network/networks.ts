import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import type { Clock } from "../../clock.ts";
import { BoughError, messageOf } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { wording } from "../../messages/wording.ts";
import { readOptional } from "../../open-for-reading.ts";
import { type ExtraHost, hostGateway, isHostName, type NetworkMode } from "../../service/wire/instance.ts";
import { errorCode } from "../../system-error.ts";
import { asFields, type RequestFields, readString, refuse, refuseUnknownFields } from "../http/fields.ts";
import { findAddresses, privateResolvConf, readHostNetwork, readResolvConf } from "./host-network.ts";
import { NetworkPool } from "./network-pool.ts";
import { type PrivateNetwork, startPrivateNetwork } from "./private-network.ts";

/** A sandbox's view of its network. */
export type SandboxNetwork =
  /** A network of its own behind two user-mode network stacks. */
  | { kind: "private"; resolvConf: string }
  /** Its own loopback, and nothing else. */
  | { kind: "none"; resolvConf: string }
  /** The machine's network, with its loopback and its abstract sockets. */
  | { kind: "host"; resolvConf: string };

/** A network that may not be ready yet. */
export interface ProvidedNetwork {
  /** The namespace to join; `undefined` for the machine's, or one that the runtime makes. */
  joined: PrivateNetwork | undefined;
  /**
   * Resolves to the machine's network, after one warning, if a private one can't be made. Rejects only if too many files are open;
   * callers may ignore it.
   */
  ready: Promise<SandboxNetwork>;
  /** Gives the network to the next sandbox, or ends it if a process may be left in it. */
  release(options: { isEmpty: boolean }): void;
}

/** The networks of this process's sandboxes. Private ones are made when a sandbox needs them, and end with this process in any case. */
export class Networks {
  readonly #environment: Environment;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  readonly #pool: NetworkPool;
  #hasFailed = false;

  constructor(options: { environment: Environment; clock: Clock; warn: (message: string) => void }) {
    this.#environment = options.environment;
    this.#clock = options.clock;
    this.#warn = options.warn;
    this.#pool = new NetworkPool(() =>
      startPrivateNetwork(findAddresses(readHostNetwork()), this.#environment, this.#clock),
    );
  }

  /** Starts making the network that `provide` waits for. Throws if too many files are open. */
  start(mode: NetworkMode): PrivateNetwork | undefined {
    return mode === "default" ? this.#try(() => this.#pool.prepare()) : undefined;
  }

  provide(mode: NetworkMode): ProvidedNetwork {
    const without = (network: SandboxNetwork): ProvidedNetwork => ({
      ...{ joined: undefined, ready: Promise.resolve(network) },
      release: () => undefined,
    });
    if (mode === "none") return without({ kind: "none", resolvConf: "" });
    const resolvConf = readResolvConf();
    const host: SandboxNetwork = { kind: "host", resolvConf };
    const network = mode === "default" ? this.#try(() => this.#pool.take()) : undefined;
    if (network === undefined) return without(host);
    const { nameServers } = network;
    const ready = network.ready.then(
      (): SandboxNetwork => ({ kind: "private", resolvConf: privateResolvConf(resolvConf, nameServers) }),
      (error: unknown) => {
        this.#useHostNetwork(error);
        return host;
      },
    );
    // A sandbox that fails in another way never awaits it.
    ready.catch(() => undefined);
    return { joined: network, ready, release: ({ isEmpty }) => this.#pool.release(network, isEmpty) };
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  #try(find: () => PrivateNetwork): PrivateNetwork | undefined {
    if (this.#hasFailed) return undefined;
    try {
      return find();
    } catch (error) {
      this.#useHostNetwork(error);
      return undefined;
    }
  }

  #useHostNetwork(error: unknown): void {
    // A lack of descriptors passes, and is no reason to open the machine's network to commands.
    if (areTooManyFilesOpen(error)) throw error;
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#warn(
      `commands use this machine's network, including its loopback services: ${messageOf(error)} (\`bough doctor\` says how to fix it)`,
    );
  }
}

function areTooManyFilesOpen(error: unknown): boolean {
  return ["EMFILE", "ENFILE"].includes(errorCode(error) ?? "");
}

/** Reads `extra_hosts` of a request. */
export function readExtraHosts({ extra_hosts: given }: RequestFields): ExtraHost[] {
  if (given == null) return [];
  if (!Array.isArray(given)) return refuse("extra_hosts", "must be a list");
  return given.map((value: unknown, index) => {
    const place = `extra_hosts[${index}]`;
    const fields = asFields(value, place);
    refuseUnknownFields(fields, ["host", "ip"], place);
    const [host, ip] = [readString(fields, "host"), readString(fields, "ip")];
    if (!isHostName(host)) refuse(`${place}.host`, "must be letters, digits, dots, hyphens and underscores");
    if (ip !== hostGateway && (isIP(ip) === 0 || ip.includes("%")))
      refuse(`${place}.ip`, `must be an IP address or ${hostGateway}`);
    return { host, ip };
  });
}

/**
 * Returns a sandbox's `/etc/hosts`: the lines of docker build's file and those of the request. This machine's own file must not affect
 * an image.
 */
export function hostsFile(
  hostname: string,
  extraHosts: readonly ExtraHost[],
  network: Pick<SandboxNetwork, "kind">,
): string {
  return [
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    `127.0.1.1\t${hostname}`,
    ...extraHosts.map(({ host, ip }) => `${ip === hostGateway ? gatewayOf(network) : ip}\t${host}`),
    "",
  ].join("\n");
}

/**
 * Returns the address by which a command reaches what listens on this machine. A private network carries IPv4 only, and does not
 * lead to this machine's loopback, so it is an address of the machine itself, as in Podman.
 */
function gatewayOf({ kind }: Pick<SandboxNetwork, "kind">): string {
  if (kind === "host") return "127.0.0.1";
  const address = machineAddress(networkInterfaces(), readOptional("/proc/net/route"));
  if (address !== undefined) return address;
  throw new BoughError(
    `${hostGateway}: this machine has no IPv4 address but that of its loopback, which a private network does not reach`,
    { hint: wording`With ${{ option: "network" }} host a command uses this machine's loopback.` },
  );
}

/** Returns the IPv4 address of the interface that has the default route in `routes` (`/proc/net/route`), or else of another one. */
export function machineAddress(
  interfaces: ReturnType<typeof networkInterfaces>,
  routes: string,
): string | undefined {
  const [, outward = ""] = /^(\S+)\t0{8}\t/m.exec(routes) ?? [];
  const all = [interfaces[outward], ...Object.values(interfaces)].flatMap((addresses) => addresses ?? []);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
}
