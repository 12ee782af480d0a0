import { createPace } from "../../pace.ts";
import type { ChangedAmount, ImageLayerChanges, LayerChange } from "../../service/wire/image.ts";
import { LayerTree } from "../copies/layer-tree.ts";
import { layerDirectory } from "../records/layers.ts";
import type { EngineState } from "../state.ts";
import { type Change, changesOf, type Links } from "./layer-changes.ts";

/** A layer of the engine, by its number. */
interface NumberedLayer {
  number: number;
}

type Totals = Pick<ImageLayerChanges, "added" | "changed" | "deleted" | "hidden">;

/** Sums up what each layer adds, changes, deletes, and what later layers hide of it. `layers`: all, the lowest first. */
export async function summarizeChanges<Layer extends NumberedLayer>(
  layers: readonly Layer[],
  state: EngineState,
): Promise<(Layer & Totals)[]> {
  const none = (): ChangedAmount => ({ files: 0, bytes: 0 });
  const summaries = layers.map((layer) => ({
    ...layer,
    added: none(),
    changed: none(),
    deleted: none(),
    hidden: none(),
  }));
  const byNumber = new Map(summaries.map((summary) => [summary.number, summary]));
  const hiddenLinks: Links = new Set();
  for (const [index, summary] of summaries.entries()) {
    await forEachChange(layers, index, { state, hiddenLinks }, (change) => {
      for (const [number, amount] of change.hidden) {
        const of = byNumber.get(number)?.hidden;
        if (of !== undefined) add(of, amount);
      }
      if (change.kind === "deleted") add(summary.deleted, totalOf(change));
      else if (change.type !== "directory") add(summary[change.kind], { files: 1, bytes: change.size });
    });
  }
  return summaries;
}

/** Lists the changes of one layer, the largest first; `limit` of them. */
export async function listChanges(
  layers: readonly NumberedLayer[],
  index: number,
  limit: number,
  state: EngineState,
): Promise<{ changes: LayerChange[]; total: number }> {
  const changes: LayerChange[] = [];
  const walk = { state, hiddenLinks: new Set<string>() };
  await forEachChange(layers, index, walk, (change) => changes.push(describe(change)));
  const weight = ({ size, hidden }: LayerChange) => Math.max(size, hidden.bytes);
  changes.sort((one, other) => weight(other) - weight(one) || (one.path < other.path ? -1 : 1));
  return { changes: changes.slice(0, limit), total: changes.length };
}

async function forEachChange(
  layers: readonly NumberedLayer[],
  index: number,
  { state, hiddenLinks }: { state: EngineState; hiddenLinks: Links },
  take: (change: Change) => void,
): Promise<void> {
  const { layout, inUserNamespace, closing } = state;
  const [layer, ...below] = layers
    .slice(0, index + 1)
    .reverse()
    .map(({ number }) => ({ layer: number, path: layerDirectory(layout, number) }));
  if (layer === undefined) return;
  const pace = createPace(closing);
  const tree = new LayerTree(below, inUserNamespace);
  for (const change of changesOf(layer.path, tree, { inUserNamespace, hiddenLinks })) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    if (change !== undefined) take(change);
  }
}

function describe(change: Change): LayerChange {
  const { kind, path, type, mode, size } = change;
  return { kind, path: path.toString(), type, mode, size, hidden: totalOf(change) };
}

function totalOf({ hidden }: Change): ChangedAmount {
  const total = { files: 0, bytes: 0 };
  for (const amount of hidden.values()) add(total, amount);
  return total;
}

function add(to: ChangedAmount, { files, bytes }: ChangedAmount): void {
  to.files += files;
  to.bytes += bytes;
}
