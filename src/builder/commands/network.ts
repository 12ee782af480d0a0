import type { Dockerfile, RunInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import type { ImageService } from "../../service/service.ts";
import type { InstanceRequest, NetworkMode } from "../../service/wire/instance.ts";

/** What a command line says of the network that RUN instructions have. */
export interface NetworkPolicy {
  /** `--network`: of every RUN that does not name one itself. */
  mode: NetworkMode;
  /** True if a RUN may ask for the host's, as BuildKit's entitlement `network.host`: no Dockerfile opens that by itself. */
  allowsHost: boolean;
}

/** `RUN --network=default` is as good as none. */
export function networkOf({ network = "default" }: RunInstruction, mode: NetworkMode): NetworkMode {
  return network === "default" ? mode : network;
}

/** Nothing for the usual network: every service knows such a request. */
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

/** The network of what bough itself runs in an image: it needs none, and has none where the whole build has none. */
export function ownOperationNetwork(mode: NetworkMode): Pick<InstanceRequest, "networking"> {
  return networkFields(mode === "none" ? "none" : "default");
}

/** Rejects where some RUN has the host's network and the service has no such thing to offer. */
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
