import { usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import type { Log } from "../../../terminal/log.ts";
import { keyedBuild } from "../../builds/keys/keyed-build.ts";
import { skippableBuild } from "../../builds/keys/skippable.ts";
import type { BuildsTogether } from "../../builds/prepare-build.ts";
import type { BuildInvocation } from "../../builds/request.ts";
import { engineDirectory, isEmbedded } from "../../service/choice.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { buildOf, type ImageOf } from "../target-request.ts";
import type { DroppedImages } from "./dropped-images.ts";
import { type ExistingTarget, findExisting, skippedAmong } from "./existing-targets.ts";
import { isDroppable } from "./key-use.ts";
import { createTargetKeys, type TargetKeys } from "./target-keys.ts";

export interface RequestDependencies {
  imageOf: ImageOf;
  together: Pick<BuildsTogether, "connections" | "tables">;
  log: Log;
}

/** The requests of the targets of a bake. */
export interface TargetRequests {
  /** Returns the request of a target whose needed targets have ended. */
  requestOf(target: ResolvedTarget): Promise<BuildInvocation>;
  /** `undefined` without `--drop-pushed`. */
  dropped: DroppedImages | undefined;
  /** The targets that `--skip-existing` leaves out; `undefined` for one that was not asked for. */
  skipped: ReadonlyMap<string, ExistingTarget | undefined>;
}

/** Prepares requests with content keys, for all targets: one with its key in a tag may be made of any other. */
export async function prepareContentKeyRequests(
  targets: ReadonlyMap<string, ResolvedTarget>,
  { imageOf, together: { connections, tables }, log }: RequestDependencies,
  invocation: BakeInvocation,
): Promise<TargetRequests> {
  const { "skip-existing": skips = false, "drop-pushed": drops = false } = invocation.options;
  const { signal } = connections;
  const keys = createTargetKeys(targets, connections, invocation, tables);
  const existing = skips
    ? await findExisting(targets, keys, { log, signal }, invocation)
    : new Map<string, ExistingTarget>();
  // Hashes of files that are read later are saved by the builds.
  keys.save();
  const skipped = skips ? skippedAmong(targets, existing) : new Set<string>();
  const built = [...targets.values()].filter(({ name }) => !skipped.has(name));
  const dropped = drops ? await openDropped(built, keys, { connections, log }, invocation) : undefined;
  return {
    dropped,
    skipped: new Map([...skipped].map((name) => [name, existing.get(name)])),
    async requestOf(target) {
      const found = await keys.findAgain(target);
      const { key } = found;
      // Other targets need the image here, but the registry has it: it is not pushed again.
      const isThere = existing.get(target.name)?.key === key;
      const fields = isThere ? { ...target.fields, output: [{ type: "cacheonly" }] } : target.fields;
      const own = buildOf({ ...target, key, fields }, imageOf, invocation);
      const annotations = skips && !isThere ? skippableBuild(own, key)?.annotations : undefined;
      return { ...own, keyed: keyedBuild(found, annotations, () => keys.findAgain(target)) };
    },
  };
}

async function openDropped(
  targets: readonly ResolvedTarget[],
  keys: TargetKeys,
  { connections, log }: Pick<RequestDependencies, "log"> & Pick<BuildsTogether, "connections">,
  invocation: BakeInvocation,
): Promise<DroppedImages> {
  const { createDroppedImages } = await import("./dropped-images.ts");
  const { options, globals, runtime } = invocation;
  if (targets.length > 0 && !targets.some((target) => !target.isLinked && isDroppable(target)))
    throw usageError(
      wording`${{ option: "drop-pushed" }}: no target is pushed, or not only`,
      wording`It removes what registries keep: give ${{ option: "push" }}.`,
    );
  if (options["platform-service"] !== undefined)
    throw usageError(
      wording`${{ option: "drop-pushed" }} and ${{ option: "platform-service" }} cannot be used together`,
    );
  const connection = () => connections.connectTo({ platforms: [], globals, option: undefined });
  const isEngine = isEmbedded(runtime, globals);
  const { makeRoomInBackground } = await import("../../service/make-room.ts");
  const makeRoom = () => {
    if (isEngine) makeRoomInBackground(runtime, engineDirectory(runtime));
  };
  return createDroppedImages(targets, keys, { connection, log, makeRoom, signal: runtime.signal });
}
