/** It is apart from the definitions of the limits, so that help need not load what knows of services. */
import { supportOf } from "../../builder/service-support.ts";
import { unsupportedOptions } from "../../service/capabilities.ts";
import type { ImageService } from "../../service/service.ts";
import type { ResourcesLimits } from "../../service/wire/instance.ts";

/** Throws if limits are given to a service that can't enforce them. */
export async function requireLimits(
  service: Pick<ImageService, "address" | "capabilities">,
  limits: ResourcesLimits | undefined,
): Promise<void> {
  if (limits === undefined) return;
  const supports = await supportOf(service).limits();
  const { shm_bytes: shm, ulimits, ...others } = limits;
  if (Object.keys(others).length > 0 && !supports.resources)
    throw unsupportedOptions(["memory", "cpus", "pids"], service, "it sets the limits itself");
  if (shm !== undefined && !supports.shm) throw unsupportedOptions(["shm-size"], service);
  if (ulimits !== undefined && !supports.ulimits) throw unsupportedOptions(["ulimit"], service);
}
