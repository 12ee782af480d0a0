import { servicePlatform } from "../../builder/bases/base.ts";
import { supportOf } from "../../builder/service-support.ts";
import { BoughError } from "../../errors.ts";
import type { Compression } from "../../image/compression.ts";
import { inheritConfig } from "../../image/config.ts";
import { completeHistory, type HistoryLine, hasLayer, squashHistory } from "../../image/history.ts";
import type { ImageToWrite } from "../../image/image-writer.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import type { LayerContent } from "../../image/layer-writer.ts";
import { type Platform, parsePlatform } from "../../image/platform.ts";
import type { Service } from "../../service/client.ts";
import type { ImageMetadataCache } from "../../store/image-metadata.ts";
import type { ImageDescription } from "../references/image-argument.ts";
import type { ImageOverBase } from "./over-base.ts";

export interface ExportedImage extends ImageDescription {
  uuid: string;
}

export interface TimeOptions {
  /** `SOURCE_DATE_EPOCH`, the maximum of the image's own times, in seconds since the epoch. */
  epoch: number | undefined;
  /** True if it is also the maximum of the files' times. */
  rewritesTimestamps: boolean;
}

/**
 * Opens an image of the service, layer by layer if the service has layers. Otherwise its layers are those of `openOverBase`, or
 * a single one.
 */
export async function openImageContent(
  service: Service,
  { uuid, config, origin }: ExportedImage,
  times: TimeOptions,
  openOverBase: (platform: Platform) => Promise<ImageOverBase | undefined>,
): Promise<ImageToWrite> {
  const { capabilities } = service;
  const platform = await platformOfImage(service, uuid);
  const { os, architecture, variant } = platform;
  const hasLayers = (await capabilities.extensions()).has("layers");
  if (!hasLayers) refuseRewriting(service, times);
  const over = hasLayers ? undefined : await openOverBase(platform);
  const layers = hasLayers
    ? await openLayers(service, uuid, times)
    : openWhole(service, uuid, times, over?.layers);
  const { history: steps = [] } = origin;
  const merged = over === undefined ? squashHistory(steps) : overHistory(over.base.history, steps);
  const known = hasLayers ? steps : merged;
  const complete = completeHistory(known, layers);
  const unknown = complete.length - known.length;
  // A line that already had a time is the base's.
  const history = complete.map((line, at) =>
    known[at - unknown]?.created === undefined && line.created !== undefined
      ? { ...line, created: timeOf(Date.parse(line.created), times) }
      : line,
  );
  const hasAllButEnv = capabilities.has("config");
  return {
    config: over === undefined ? config : inheritConfig(over.base.config, config, { hasAllButEnv }),
    origin: { ...origin, history },
    platform: { os, architecture, variant: variant || undefined },
    created: timeOf(Date.parse(history.at(-1)?.created ?? "1970-01-01"), times),
    layers,
  };
}

/** Returns an image's platform: that of its service, unless it says another. */
export async function platformOfImage(
  { capabilities, findImage }: Pick<Service, "capabilities" | "findImage">,
  uuid: string,
): Promise<Platform> {
  const found = (await supportOf({ capabilities }).platforms()) ? await findImage(uuid) : undefined;
  const said = found === undefined || found === "unsupported" ? undefined : found.platform;
  return said === undefined ? servicePlatform(supportOf({ capabilities })) : parsePlatform(said);
}

/** A layer, with the line of history that it has unless the image's history has one. */
type OpenedLayer = LayerContent & { created: string; created_by: string };

async function openLayers(service: Service, image: string, times: TimeOptions): Promise<OpenedLayer[]> {
  const clampTo = times.rewritesTimestamps ? times.epoch : undefined;
  const layers = await service.listLayers(image);
  const extensions = await service.capabilities.extensions();
  // Only for the progress, which does without them.
  const measured = extensions.has("layer-sizes") ? await service.layerSizes(image).catch(() => []) : [];
  const sizes = new Map(measured.map(({ id, size }) => [id, size]));
  return layers.map((layer): OpenedLayer => {
    const shared = {
      created: layer.created_at,
      created_by: layer.is_imported ? "bough images import" : "bough build",
    };
    // A base's layer keeps its digest, and therefore its times.
    if (layer.blob !== undefined) {
      const { media_type, digest, size, diff_id } = layer.blob;
      const stored = { mediaType: media_type, digest, size, diffId: diff_id };
      return {
        ...shared,
        id: layer.id,
        stored,
        // A layer that is not here yet need not be fetched for a push to the registry that it is in.
        sources: layer.source === undefined ? [] : [layer.source],
        size,
        pack: (job) => service.packLayer(image, layer.id, { ...job, clampTo: undefined }),
        open: () => service.openLayer(image, layer.id, undefined),
      };
    }
    const id = clampTo === undefined ? layer.id : `${layer.id} until ${clampTo}`;
    const size = sizes.get(layer.id);
    return {
      ...{ ...shared, id, size },
      pack: (job) => service.packLayer(image, layer.id, { ...job, clampTo }),
      open: () => service.openLayer(image, layer.id, clampTo),
    };
  });
}

function refuseRewriting({ address }: Service, { rewritesTimestamps }: TimeOptions): void {
  if (!rewritesTimestamps) return;
  throw new BoughError(`${address} does not support rewriting timestamps`, {
    hint: "It is supported for images of the embedded engine and of `bough serve`.",
  });
}

function openWhole(
  service: Service,
  image: string,
  times: TimeOptions,
  layers: readonly LayerContent[] = [{ open: () => service.openArchive(image, "/") }],
): OpenedLayer[] {
  // The service does not know when the image was made, and the same image must give the same bytes.
  const created = timeOf((times.epoch ?? 0) * 1000, times);
  return layers.map((layer) => ({ created, created_by: "bough", ...layer }));
}

/** Returns the base's history, and the image's own as that of one layer. `steps` may begin with the base's history. */
function overHistory(base: readonly HistoryLine[], steps: readonly HistoryLine[]): HistoryLine[] {
  const hasBase = base.every(({ created_by }, at) => steps[at]?.created_by === created_by);
  const own = squashHistory(hasBase ? steps.slice(base.length) : steps);
  return [...base, ...own, ...(own.some(hasLayer) ? [] : [{ created_by: "bough" }])];
}

function timeOf(milliseconds: number, { epoch }: TimeOptions): string {
  const clamped = epoch === undefined ? milliseconds : Math.min(milliseconds, epoch * 1000);
  return new Date(clamped).toISOString();
}

/** Adds the digests of layers that were written before. A registry may have them. */
export function withKnownLayers(
  content: ImageToWrite,
  imageMetadata: Pick<ImageMetadataCache, "get" | "set">,
  compression: Compression,
): ImageToWrite {
  const question = `layer blob ${compression}`;
  const layers = content.layers.map((layer): LayerContent => {
    const { id } = layer;
    if (id === undefined) return layer;
    const known = readBlob(imageMetadata.get(id, question));
    const onWritten = (blob: LayerBlob) => imageMetadata.set(id, question, JSON.stringify(blob));
    return { ...layer, onWritten, known };
  });
  return { ...content, layers };
}

function readBlob(text: string | undefined): LayerBlob | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as LayerBlob);
}
