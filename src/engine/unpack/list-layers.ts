import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { type LayerTable, readTable } from "../../image/layer-table.ts";
import type { TarEntry } from "../../image/tar-reader.ts";
import { createPace } from "../../pace.ts";
import { createSemaphore } from "../../semaphore.ts";
import { errorCode } from "../../system-error.ts";
import { type OpenedSource, openGuardedSource } from "../import/fetch-blobs.ts";
import { createBudget } from "../import-limits.ts";
import { type AbsentBlob, absentBlobs } from "../records/absent-layers.ts";
import type { Image } from "../records/images.ts";
import { listingDirectory, lookupDirectory, tableOf, unlistedLayers } from "../records/layer-listings.ts";
import { layerChain } from "../records/layers.ts";
import type { EngineState } from "../state.ts";
import { completeLayer } from "./complete-layer.ts";
import { LayerWriter } from "./layer-writer.ts";

/** The maximum number of tables that are read at the same time. */
const maxConcurrent = 8;

/** Makes listings of an image's absent layers from the tables of contents in their blobs. Rejects if one is missing or damaged. */
export async function makeListings(state: EngineState, image: Pick<Image, "layer">): Promise<void> {
  const unlisted = unlistedLayers(state, image);
  const chain = layerChain(state.database, image.layer).reverse();
  const slots = createSemaphore(maxConcurrent);
  const sources = new Map<string, Promise<OpenedSource>>();
  const read = async (layer: number): Promise<TarEntry[] | undefined> => {
    const [blob] = absentBlobs(state, layer);
    if (blob === undefined || unlisted?.includes(layer) === false) return undefined;
    const table = tableOf(state.database, layer);
    const release = await slots.acquire(state.closing);
    try {
      const { store } = await sources.getOrInsertComputed(blob.source, () =>
        openGuardedSource(state, blob.source),
      );
      return await readEntries(state, blob, table, store);
    } finally {
      release();
    }
  };
  try {
    const entries = await Promise.all(chain.map(read));
    const below: string[] = [];
    for (const [index, layer] of chain.entries()) {
      const listed = entries[index];
      if (listed !== undefined) await writeListing(state, layer, listed, below);
      below.unshift(lookupDirectory(state, layer));
    }
  } finally {
    for (const source of sources.values()) (await source.catch(() => undefined))?.[Symbol.dispose]();
  }
}

async function readEntries(
  { layout, importLimits, closing }: EngineState,
  blob: AbsentBlob,
  table: LayerTable | undefined,
  store: OpenedSource["store"],
): Promise<TarEntry[]> {
  const name = `layer ${blob.digest} of ${blob.source}`;
  const bytes = table && (await store.readPart?.(blob, table, closing));
  if (table === undefined || bytes === undefined)
    throw new BoughError(`${name} has no table of contents that can be read`);
  const entries = await readTable(bytes, table, name);
  createBudget(name, layout.directory, importLimits).check({ entries: entries.length });
  return entries;
}

async function writeListing(
  { layout, inUserNamespace, closing }: EngineState,
  layer: number,
  entries: readonly TarEntry[],
  below: readonly string[],
): Promise<void> {
  const directory = join(layout.scratch, crypto.randomUUID());
  const pace = createPace(closing);
  mkdirSync(directory);
  try {
    const writer = new LayerWriter(directory, inUserNamespace);
    for (const entry of entries) {
      await pace.step();
      await writer.write(entry);
    }
    await completeLayer(directory, writer.finish(), below, { inUserNamespace, pace });
    renameSync(directory, listingDirectory(layout, layer));
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    // With these errors, another process has made the listing meanwhile.
    if (!["EEXIST", "ENOTEMPTY"].includes(errorCode(error) ?? "")) throw error;
  }
}
