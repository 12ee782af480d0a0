/** Reads the layers of a set of images, each once, and finds files that are in several of them. */
import { instructionOf, layerLine, linesWithLayers } from "../../image/history.ts";
import type { ImageLayer } from "../../service/wire/image.ts";
import { resolveDescribedImage } from "../references/image-argument.ts";
import type { Connection } from "../service/connection.ts";
import { type ComparedImage, findDuplicates, type HistoryStep } from "./findings.ts";
import { type LargeFile, readLayer } from "./read-layer.ts";
import type { LayerComparison } from "./report.ts";
import { createFileTable, type SharedFiles } from "./shared-files.ts";

interface ImageSetComparison extends LayerComparison {
  /** The number of layers that are not read, since they are still in a registry. */
  unread: number;
}

/** An image as the user names it, and its name in the report. */
export interface NamedImage {
  name: string;
  image: string;
}

/** Compares the layers of images. An image with two names counts once. */
export async function compareImages(
  named: readonly NamedImage[],
  connection: Pick<Connection, "service" | "store">,
  signal: AbortSignal,
): Promise<ImageSetComparison> {
  const images = new Map<string, ComparedImage>();
  const reader = createLayerReader(connection.service);
  for (const { name, image } of named) {
    signal.throwIfAborted();
    const { uuid, origin } = await resolveDescribedImage(connection, image);
    if (images.has(uuid)) continue;
    const layers = await connection.service.listLayers(uuid);
    const numbers: number[] = [];
    for (const layer of layers) {
      signal.throwIfAborted();
      numbers.push(await reader.read(uuid, layer));
    }
    images.set(uuid, { name, steps: stepsOf(origin.history ?? [], layers, numbers) });
  }
  const findings = findDuplicates({ images: [...images.values()], ...reader.found() });
  const diskBytes = findings.reduce((sum, each) => sum + each.diskBytes, 0);
  const registryBytes = findings.reduce((sum, each) => sum + each.registryBytes, 0);
  return { images: images.size, ...reader.counts(), diskBytes, registryBytes, findings };
}

function stepsOf(
  history: Parameters<typeof linesWithLayers>[0],
  layers: readonly ImageLayer[],
  numbers: readonly number[],
): HistoryStep[] {
  return linesWithLayers(history, layers.map(layerLine)).map(({ line, layer }) => ({
    instruction: instructionOf(line),
    layer: layer === undefined ? undefined : numbers[layer],
    isBase: layer !== undefined && layers[layer]?.is_imported === true,
  }));
}

/** Returns a reader that numbers layers, and reads each once. */
function createLayerReader(service: Pick<Connection["service"], "openLayer">) {
  const table = createFileTable();
  const numbers = new Map<string, number>();
  const digests = new Map<number, string>();
  const largest: LargeFile[] = [];
  let next = 0;
  const counts = { layers: 0, size: 0, unread: 0 };

  async function readNew(image: string, { id, is_remote }: ImageLayer): Promise<number> {
    if (is_remote === true) {
      counts.unread += 1;
      return next++;
    }
    const content = await service.openLayer(image, id, undefined);
    const { digest, files, bytes, largest: large } = await readLayer(content, `layer ${id}`);
    const number = next++;
    digests.set(number, digest);
    table.add(number, files);
    // Files of earlier layers are listed already.
    largest.push(...large.filter(table.isNew));
    counts.layers += 1;
    counts.size += bytes;
    return number;
  }

  return {
    async read(image: string, layer: ImageLayer): Promise<number> {
      const key = layer.blob?.diff_id ?? layer.id;
      const number = numbers.get(key) ?? (await readNew(image, layer));
      numbers.set(key, number);
      return number;
    },
    found: () => {
      const bySet = Map.groupBy(largest, table.setOf);
      return {
        shared: table.shared(),
        archivesOf: (layers: readonly number[]) => new Set(layers.map((layer) => digests.get(layer))).size,
        largestOf: ({ set }: SharedFiles) => bySet.get(set) ?? [],
      };
    },
    counts: () => ({ ...counts }),
  };
}
