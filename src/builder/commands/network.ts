import type { Dockerfile, RunInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import type { ImageService } from "../../service/service.ts";
import type { InstanceRequest, NetworkMode } from "../../service/wire/instance.ts";

/** The network options of the command line for RUN instructions. */
export interface NetworkPolicy {
  /** `--network`: of every RUN without its own. */
  mode: NetworkMode;
  /** True if a RUN may use the host's network, like BuildKit's entitlement `network.host`. A Dockerfile can't grant it itself. */
  allowsHost: boolean;
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

/** Returns the network of bough's own operations in an image: they need none, and get none if the build has none. */
export function ownOperationNetwork(mode: NetworkMode): Pick<InstanceRequest, "networking"> {
  return networkFields(mode === "none" ? "none" : "default");
}

/** Rejects if a RUN uses the host's network and the service does not offer it. */
export async function requireNetworks(
  { instructions }: Dockerfile,
  { mode }: NetworkPolicy,
  service: Pick<ImageService, "capabilities">,
): Promise<void> {
  const needsHost = instructions.some((one) => one.name === "RUN" && networkOf(one, mode) === "host");
  if (needsHost) await requireHostNetwork(service);
}

export async function requireHostNetwork(service: Pick<ImageService, "capabilities">): Promise<void> {
  if ((await service.capabilities.extensions()).has(hostNetworkExtension)) return;
  throw new BoughError(
    `--network=host: this service does not offer its host's network (GET /v1/whoami does not name the extension ${hostNetworkExtension})`,
    { hint: "Leave it out, or use the embedded engine with --local: there it is this machine's network." },
  );
}

const hostNetworkExtension = "host-network";
