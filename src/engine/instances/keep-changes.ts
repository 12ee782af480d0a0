import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { withVariables } from "../../image/config.ts";
import { type HistoryLine, type ImageOrigin, withinLimit } from "../../image/history.ts";
import type { LimitHit } from "../../service/wire/operation.ts";
import { sandboxSpid } from "../records/event-files.ts";
import { addImage, type Image } from "../records/images.ts";
import { addLayer, findLayer, layerDirectory } from "../records/layers.ts";
import type { OperationRun } from "../run-operation.ts";
import { countedSize } from "../sandbox/limits/counted-size.ts";
import { isUnchanged } from "../sandbox/root/mount-points.ts";
import type { EngineState } from "../state.ts";
import type { InstanceSpec } from "./spec.ts";

/** However short the command was: nothing is stored that is over the limit. */
export async function requireSmallLayer(
  { events }: EngineState,
  { uuid, directory, signal }: OperationRun,
  limit: number | undefined,
  limitsHit: readonly LimitHit[],
): Promise<void> {
  if (limit === undefined) return;
  const size = await countedSize(join(directory, "upper"), limit, signal);
  if (size <= limit && !limitsHit.some((hit) => hit.limit === "max_layer_bytes")) return;
  // It is counted no further than it has to be, or may be out of reach: it is over the limit all the same.
  const counted = Number.isFinite(size) ? Math.max(size, limit) : limit;
  events.append(uuid, sandboxSpid, "size_cap", { limit_bytes: limit, file_size: counted });
  throw new BoughError(`the layer has grown past max_layer_bytes (${limit}), and is not kept`);
}

/** Returns how to make the result an image, for the transaction that ends the operation. */
export async function keepChanges(
  state: EngineState,
  image: Image,
  spec: Pick<InstanceSpec, "disposable" | "preserveEnv" | "env" | "history"> & {
    linkedLayers?: ReadonlySet<number>;
  },
  run: OperationRun,
): Promise<() => string | undefined> {
  const upper = join(run.directory, "upper");
  if (spec.disposable) {
    // Whoever learns that this has ended finds its room on the disk free again.
    await rm(upper, { recursive: true, force: true });
    return () => undefined;
  }
  const unchanged = isUnchanged(layerDirectory(state.layout, image.layer), upper);
  if (unchanged && !spec.preserveEnv) return () => image.uuid;
  const config = spec.preserveEnv ? withVariables(image.config, Object.entries(spec.env)) : image.config;
  return () => {
    const { database, layout } = state;
    const createdAt = state.clock.now();
    const parent = findLayer(database, image.layer);
    const layer = unchanged
      ? image.layer
      : addLayer(database, layout, {
          directory: upper,
          parent,
          linkedLayers: spec.linkedLayers ?? new Set(),
          unsyncedIn: state.boot,
          createdAt,
        }).id;
    state.layerSync.request();
    const origin = unchanged ? image.origin : originOf(image, spec.history);
    return addImage(database, { layer, config, origin, operation: run.uuid, createdAt });
  };
}

/** An image whose own history nobody knows has the steps since as its whole history. */
function originOf(
  { origin: { history = [], ...origin } }: Image,
  steps: readonly HistoryLine[],
): ImageOrigin {
  return { ...origin, history: withinLimit([...history, ...steps]) };
}
