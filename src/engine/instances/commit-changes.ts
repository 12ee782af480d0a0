import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { isWhiteoutName, whiteoutNameError } from "../../image/archive-limits.ts";
import { withEnv } from "../../image/config.ts";
import { type HistoryLine, type ImageOrigin, truncateHistory } from "../../image/history.ts";
import { createPace } from "../../pace.ts";
import { type LimitHit, sandboxSpid } from "../../service/wire/operation.ts";
import type { Filled } from "../copies/fill-upper.ts";
import { addImage, type Image } from "../records/images.ts";
import { lookupDirectory } from "../records/layer-listings.ts";
import { countMarks, noMarks } from "../records/layer-marks.ts";
import { addLayer, findLayer } from "../records/layers.ts";
import type { OperationRun } from "../run-operation.ts";
import { countedSize } from "../sandbox/limits/watchers.ts";
import { isUnchanged } from "../sandbox/root/mount-points.ts";
import type { EngineState } from "../state.ts";
import { setUpperAttributes } from "../system/owner-and-mode.ts";
import { joinPath, type Path } from "../system/path.ts";
import type { InstanceSpec } from "./spec.ts";

/** Throws if the layer is over the limit. The watcher may not have noticed that if the command was short. */
export async function requireLayerWithinLimit(
  { events }: EngineState,
  { uuid, directory, signal }: OperationRun,
  limit: number | undefined,
  limitsHit: readonly LimitHit[],
): Promise<void> {
  if (limit === undefined) return;
  const size = await countedSize(join(directory, "upper"), limit, signal);
  if (size <= limit && !limitsHit.some((hit) => hit.limit === "max_layer_bytes")) return;
  // Counting stops above the limit, and may fail. The size is over the limit in both cases.
  const counted = Number.isFinite(size) ? Math.max(size, limit) : limit;
  events.append(uuid, sandboxSpid, "size_cap", { limit_bytes: limit, file_size: counted });
  throw new BoughError(`the layer is larger than max_layer_bytes (${limit}) and was discarded`);
}

/** Returns a function that makes the result an image, for the transaction that ends the operation. */
export async function commitChanges(
  state: EngineState,
  image: Image,
  spec: Pick<InstanceSpec, "disposable" | "preserveEnv" | "env" | "history"> & {
    /** `undefined` if a command ran. */
    filled?: Filled;
    /** `undefined` if no command ran: files and copies alone delete nothing. */
    exitCode: number | undefined;
  },
  run: OperationRun,
): Promise<() => string | undefined> {
  const upper = join(run.directory, "upper");
  if (spec.disposable) {
    // The space must be free again when clients learn that the operation has ended.
    await rm(upper, { recursive: true, force: true });
    return () => undefined;
  }
  const unchanged = isUnchanged(upper);
  if (unchanged && !spec.preserveEnv) return () => image.uuid;
  const config = spec.preserveEnv ? withEnv(image.config, Object.entries(spec.env)) : image.config;
  if (!unchanged) setUpperAttributes(upper, lookupDirectory(state, image.layer));
  const hasMarks = spec.exitCode !== undefined && !unchanged;
  // If the command has failed, its own error is reported.
  const onName = spec.exitCode === 0 ? refuseMarkNames(upper) : undefined;
  const marks = hasMarks ? await countMarks(upper, createPace(run.signal), onName) : noMarks;
  return () => {
    const { database, layout } = state;
    const createdAt = state.clock.now();
    const parent = findLayer(database, image.layer);
    const layer = unchanged
      ? image.layer
      : addLayer(database, layout, {
          directory: upper,
          marks,
          parent,
          ...spec.filled,
          unsyncedIn: { boot: state.boot, operation: run.uuid },
          createdAt,
        }).id;
    state.layerSync.request();
    const origin = unchanged ? image.origin : originOf(image, spec.history);
    return addImage(database, { layer, config, origin, operation: run.uuid, createdAt });
  };
}

/** Returns a function that throws for a name that would be a whiteout in an exported layer. */
function refuseMarkNames(upper: string): (name: Path, parent: Path) => void {
  return (name, parent) => {
    if (!isWhiteoutName(name)) return;
    const inside = joinPath(parent, name).toString().slice(upper.length);
    throw whiteoutNameError(inside, "Remove it in the same command.");
  };
}

/** Adds steps to an image's history. If the history is unknown, it consists of the new steps. */
function originOf(
  { origin: { history = [], ...origin } }: Image,
  steps: readonly HistoryLine[],
): ImageOrigin {
  return { ...origin, history: truncateHistory([...history, ...steps]) };
}
