import { completeHistory, type HistoryLine, instructionOf, linesByLayer } from "../../image/history.ts";
import type { ImageLayerChanges } from "../../service/wire/layer-changes.ts";
import type { Store } from "../../store/store.ts";
import type { Connection } from "../service/connection.ts";

/** A layer as `bough inspect` shows it. */
export interface InspectedLayer {
  /** The service's id of the layer; `undefined` if the service keeps no layers. */
  id: string | undefined;
  instruction: string;
  /** Instructions of other changes in it: files copied before, or layers merged into it. */
  others: readonly string[];
  createdAt: string;
  /** `null` if unknown. */
  isBase: boolean | null;
  changes: Pick<ImageLayerChanges, "added" | "changed" | "deleted" | "hidden"> | null;
}

interface InspectedLayers {
  /** The lowest first. */
  layers: InspectedLayer[];
  history: readonly HistoryLine[];
}

/** Returns the layers that the service reports, else those that builds and sessions on this machine have recorded. */
export async function findLayers(
  image: string,
  history: readonly HistoryLine[],
  { service, store }: Pick<Connection, "service" | "store">,
): Promise<InspectedLayers> {
  if (!(await service.capabilities.extensions()).has("changes"))
    return { layers: recordedLayers(image, store), history };
  const found = await service.summarizeChanges(image);
  const unnamed = found.map(({ created_at, is_imported }) => ({
    created: created_at,
    created_by: is_imported ? "imported" : "",
  }));
  const lines = linesByLayer(history, unnamed);
  const layers = found.map(({ id, created_at, is_imported, ...changes }, index): InspectedLayer => {
    const { line = {}, others = [] } = lines[index] ?? {};
    const createdAt = line.created ?? created_at;
    const told = { instruction: instructionOf(line), others: others.map(instructionOf) };
    return { id, ...told, createdAt, isBase: is_imported, changes };
  });
  return { layers, history: completeHistory(history, unnamed) };
}

/**
 * Returns the steps to the image in the first session that has it in its history. Sessions that have made it come before those that
 * only use it.
 */
function recordedLayers(image: string, { sessions }: Pick<Store, "sessions">): InspectedLayer[] {
  let used: InspectedLayer[] = [];
  for (const { key } of sessions.list("")) {
    const entries = new Map(sessions.history(key)?.map((entry) => [entry.id, entry]));
    const found = [...entries.values()].filter((each) => each.image === image);
    const made = found.find(({ kind }) => kind !== "use");
    const layers: InspectedLayer[] = [];
    for (let entry = made ?? found[0]; entry !== undefined; entry = entries.get(entry.parent ?? -1)) {
      layers.unshift({
        id: undefined,
        instruction: entry.title,
        others: [],
        createdAt: new Date(entry.createdAt).toISOString(),
        isBase: ["run", "copy", "commit"].includes(entry.kind) ? false : null,
        changes: null,
      });
    }
    if (made !== undefined) return layers;
    if (used.length === 0) used = layers;
  }
  return used;
}

/** Bytes of its files. */
export function sizeOf({ changes }: Pick<InspectedLayer, "changes">): number {
  return changes === null ? 0 : changes.added.bytes + changes.changed.bytes;
}
