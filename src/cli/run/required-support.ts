import { requireHostNetwork, requireHosts } from "../../builder/commands/network.ts";
import type { ExtraHost, NetworkMode, ResourcesLimits } from "../../service/wire/instance.ts";
import type { InstanceMount } from "../../service/wire/mount.ts";
import type { Connection } from "../service/connection.ts";
import { requireLimits } from "./limit-options.ts";
import { requireVolumes } from "./volume-argument.ts";

/** Options that not every service supports. */
export interface SandboxOptions {
  limits: ResourcesLimits | undefined;
  /** Directories of this machine. */
  volumes: readonly InstanceMount[];
  network: NetworkMode;
  /** `--add-host`. */
  hosts: readonly ExtraHost[];
}

/** Rejects if the service cannot do what the options ask for. */
export async function requireSupport(
  { limits, volumes, network, hosts }: SandboxOptions,
  service: Connection["service"],
): Promise<void> {
  await requireLimits(service, limits);
  await requireVolumes(service, volumes);
  await requireHosts(hosts, service);
  if (network === "host") await requireHostNetwork(service);
}
