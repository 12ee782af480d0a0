import type { LentFile } from "../../service/wire/file.ts";
import { RequestError, respondStarted } from "../http/answers.ts";
import { readBody } from "../http/fields.ts";
import { imageOf } from "../mounts/mount-spec.ts";
import { type Image, requireImage } from "../records/images.ts";
import type { Call } from "../router.ts";
import { startOperation } from "../run-operation.ts";
import { maxUlimits, requireUlimits } from "../sandbox/limits/limits.ts";
import type { EngineState } from "../state.ts";
import { whyNotRunnable } from "../system/emulation.ts";
import { requireRuntime } from "../system/programs.ts";
import { performInstance } from "./perform.ts";
import { describeRequest, type InstanceSpec, readInstanceSpec } from "./spec.ts";

/** Checks a request, and starts its operation. */
export async function startInstance({ state, request }: Pick<Call, "state" | "request">): Promise<Response> {
  const spec = await readInstanceSpec(await readBody(request), state.database, state.layout);
  if (state.isServer) refuseLocal(spec);
  if (spec.limits.ulimits !== undefined) requireUlimits(spec.limits.ulimits, maxUlimits(state));
  const lent = requireLoan(state, spec.lentFiles);
  const image = requireImage(state, spec.image);
  const copies = spec.copies.map((copy) => ({ spec: copy, image: requireImage(state, copy.image) }));
  const mounts = spec.mounts.map((mount) => {
    const from = imageOf(mount);
    const lent = requireLoan(state, mount.type === "files" ? mount.lentFiles : undefined);
    return { spec: mount, image: from === undefined ? undefined : requireImage(state, from), lent };
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
    perform: (run) => performInstance(state, { image, spec, lent, copies, mounts }, run),
  });
  return respondStarted(uuid, metadata);
}

function requireRunnable({ uuid, origin: { platform } }: Image): void {
  const reason = whyNotRunnable(platform);
  if (reason !== undefined) throw new RequestError(501, `image ${uuid} is for ${platform}, and ${reason}`);
}

function requireLoan({ loans }: EngineState, id: string | undefined): Iterable<LentFile> {
  const lent = id === undefined ? [] : loans.get(id);
  if (lent === undefined) throw new RequestError(404, `there are no lent files ${JSON.stringify(id)}`);
  return lent;
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
