import type { Dockerfile, RunInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { unsupportedOptions } from "../../service/capabilities.ts";
import type { ImageService } from "../../service/service.ts";
import type { ExtraHost, InstanceRequest, NetworkMode } from "../../service/wire/instance.ts";
import type { AskedBuild } from "../job.ts";
import type { ServiceSupport } from "../service-support.ts";

/** The network options of the command line for RUN instructions. */
export interface NetworkPolicy {
  /** `--network`: of every RUN without its own. */
  mode: NetworkMode;
  /** True if a RUN may use the host's network, like BuildKit's entitlement `network.host`. A Dockerfile can't grant it itself. */
  allowsHost: boolean;
  /** `--add-host`: of every RUN. */
  hosts: readonly ExtraHost[];
}

/** `RUN --network=default` means the same as no flag. */
export function networkOf({ network = "default" }: RunInstruction, mode: NetworkMode): NetworkMode {
  return network === "default" ? mode : network;
}

/** Returns no fields for the default network, so that every service understands the request. */
export function networkFields(mode: NetworkMode): Pick<InstanceRequest, "networking"> {
  switch (mode) {
    case "default":
      return {};
    case "none":
      return { networking: { enabled: false } };
    case "host":
      return { networking: { mode } };
  }
}

/** Returns no fields if there are no such hosts, so that every service understands the request. */
export function hostFields(hosts: readonly ExtraHost[]): Pick<InstanceRequest, "extra_hosts"> {
  return hosts.length === 0 ? {} : { extra_hosts: hosts };
}

/** Returns the network fields of a command: the given options, then the fields of the failed step that it replaces. */
export function instanceNetwork(
  { network, hosts }: { network: NetworkMode; hosts: readonly ExtraHost[] },
  { networking, extra_hosts = [] }: Pick<InstanceRequest, "networking" | "extra_hosts">,
): Pick<InstanceRequest, "networking" | "extra_hosts"> {
  return {
    ...(network === "default" && networking ? { networking } : networkFields(network)),
    // The first line of a name counts.
    ...hostFields([...hosts, ...extra_hosts]),
  };
}

/**
 * Returns the hosts' part of a RUN's chain hash. As in BuildKit, the names count and the addresses do not: a mirror may have
 * another address on each machine. `undefined`: there are none.
 */
export function hostsKey(hosts: readonly ExtraHost[]): string | undefined {
  const names = [...new Set(hosts.map(({ host }) => host))].sort();
  return names.length === 0 ? undefined : `--add-host=${names.join(",")}`;
}

/** BuildKit's argument for the host name that a RUN sees. */
export const hostNameArgument = "BUILDKIT_SANDBOX_HOSTNAME";

type HostNaming = Pick<AskedBuild, "dialect" | "buildArgs">;

/** Returns the host name that a RUN sees: BuildKit's with `--docker`, or that of its build argument. */
export function runHostName({ dialect, buildArgs }: HostNaming): string | undefined {
  return dialect.hostName && (buildArgs.get(hostNameArgument) || dialect.hostName);
}

/** Returns the host name's part of a RUN's chain hash; `undefined` for the usual name. */
export function hostNameKey(asked: HostNaming): string | undefined {
  const name = runHostName(asked);
  return name === undefined || name === asked.dialect.hostName ? undefined : `--hostname=${name}`;
}

/** Returns the network of bough's own operations in an image: they need none, and get none if the build has none. */
export function ownOperationNetwork(mode: NetworkMode): Pick<InstanceRequest, "networking"> {
  return networkFields(mode === "none" ? "none" : "default");
}

/** Rejects if the service does not offer what a RUN's network needs. */
export async function requireNetworks(
  { instructions }: Dockerfile,
  { mode, hosts }: NetworkPolicy,
  service: Pick<ImageService, "address">,
  supports: ServiceSupport,
): Promise<void> {
  await requireHosts(hosts, service, supports);
  const needsHost = instructions.some((one) => one.name === "RUN" && networkOf(one, mode) === "host");
  if (needsHost) await requireHostNetwork(supports);
}

export async function requireHostNetwork(supports: Pick<ServiceSupport, "hostNetwork">): Promise<void> {
  if (await supports.hostNetwork()) return;
  throw new BoughError(
    wording`${{ option: "network" }}=host: this service does not offer its host's network (GET /v1/whoami does not name the extension host-network)`,
    {
      hint: wording`Leave it out, or use the embedded engine with ${{ option: "local" }}: there it is this machine's network.`,
    },
  );
}

export async function requireHosts(
  hosts: readonly ExtraHost[],
  service: Pick<ImageService, "address">,
  supports: Pick<ServiceSupport, "extraHosts">,
): Promise<void> {
  if (hosts.length > 0 && !(await supports.extraHosts())) throw unsupportedOptions(["add-host"], service);
}
