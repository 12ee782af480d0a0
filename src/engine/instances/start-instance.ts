import { RequestError } from "../http/responses.ts";
import { imageOf } from "../mounts/requested-mount.ts";
import { type Image, requireImage } from "../records/images.ts";
import { startOperation } from "../run-operation.ts";
import { maxUlimits, requireUlimits } from "../sandbox/limits/limits.ts";
import type { EngineState } from "../state.ts";
import { unrunnableReason } from "../system/emulation.ts";
import { requireRuntime } from "../system/programs.ts";
import { performInstance } from "./perform.ts";
import { describeRequest, type InstanceSpec, readInstanceSpec } from "./spec.ts";

/** The operation of an instance, with what its record says of the request. */
interface StartedInstance {
  uuid: string;
  metadata: Record<string, unknown>;
}

/** Reads a request and starts its instance, unless the signal is aborted by then. */
export async function startRequested(
  state: EngineState,
  request: Parameters<typeof readInstanceSpec>[0],
  signal?: AbortSignal,
): Promise<StartedInstance> {
  const spec = await readInstanceSpec(request, state.database, state.layout);
  signal?.throwIfAborted();
  return startInstance(state, spec);
}

export function startInstance(state: EngineState, spec: InstanceSpec): StartedInstance {
  if (state.isServer) refuseLocal(spec);
  if (spec.limits.ulimits !== undefined) requireUlimits(spec.limits.ulimits, maxUlimits(state));
  const image = requireImage(state, spec.image);
  const copies = spec.copies.map((copy) => ({ spec: copy, image: requireImage(state, copy.image) }));
  const mounts = spec.mounts.map((mount) => {
    const from = imageOf(mount);
    return { spec: mount, image: from === undefined ? undefined : requireImage(state, from) };
  });
  if (spec.command !== "") {
    requireRuntime(state.environment);
    requireRunnable(image);
  }
  const metadata = describeRequest(spec, image);
  const uuid = startOperation(state, {
    kind: "instance",
    metadata,
    hasCommand: spec.command !== "",
    startImage: image.uuid,
    otherImages: [...copies, ...mounts].flatMap((other) => other.image?.uuid ?? []),
    perform: (run) => performInstance(state, { image, spec, copies, mounts }, run),
  });
  return { uuid, metadata };
}

function requireRunnable({ uuid, origin: { platform } }: Image): void {
  const reason = unrunnableReason(platform);
  if (reason !== undefined) throw new RequestError(501, `image ${uuid} is for ${platform}, and ${reason}`);
}

/** Throws for what only a client in the same process may use. */
function refuseLocal({ network, mounts }: InstanceSpec): void {
  if (network === "host") throw new RequestError(403, "networking.mode host is not allowed on a server");
  const local = mounts.find(({ type }) => type === "ssh" || type === "host");
  if (local !== undefined)
    throw new RequestError(403, `mounts of type ${local.type} are not allowed on a server`);
  if (mounts.some((mount) => mount.type === "cache" && mount.contents !== undefined))
    throw new RequestError(403, "contents of caches are not allowed on a server");
}
