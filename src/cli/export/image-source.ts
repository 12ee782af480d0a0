import { defaultPlatform, parsePlatform } from "../../builder/bases/platform.ts";
import { BoughError } from "../../errors.ts";
import type { Compression } from "../../image/compress.ts";
import type { ImageConfig } from "../../image/config.ts";
import type { ImageContent, LayerContent } from "../../image/image-writer.ts";
import type { LayerBlob } from "../../image/layer-blob.ts";
import type { Service } from "../../service/client.ts";
import type { FactStore } from "../../store/facts.ts";

export interface ExportedImage {
  uuid: string;
  config: ImageConfig;
}

export interface TimeOptions {
  /** `SOURCE_DATE_EPOCH`: no time of the image's own is later. Seconds since the epoch. */
  epoch: number | undefined;
  /** Nor any of its files'. */
  rewritesTimestamps: boolean;
}

/** An image of the service, read layer by layer where the service can; else all of it is one layer. */
export async function openImageContent(
  service: Service,
  { uuid, config }: ExportedImage,
  times: TimeOptions,
): Promise<ImageContent> {
  const { capabilities } = service;
  const { os, architecture, variant } = parsePlatform((await capabilities.platform()) ?? defaultPlatform);
  const hasLayers = (await capabilities.extensions()).has("layers");
  const layers = hasLayers ? await openLayers(service, uuid, times) : [wholeImage(service, uuid, times)];
  const created = layers.at(-1)?.created ?? timeOf(0, times);
  return { config, platform: { os, architecture, variant: variant || undefined }, created, layers };
}

async function openLayers(service: Service, image: string, times: TimeOptions): Promise<LayerContent[]> {
  const clampTo = times.rewritesTimestamps ? times.epoch : undefined;
  const layers = await service.listLayers(image);
  return layers.map((layer): LayerContent => {
    const shared = {
      created: timeOf(Date.parse(layer.created_at), times),
      createdBy: layer.is_imported ? "bough images import" : "bough build",
    };
    // A base stays what it is, to the digest: its times, too.
    if (layer.blob !== undefined) {
      const { media_type, digest, size, diff_id } = layer.blob;
      const stored = { mediaType: media_type, digest, size, diffId: diff_id };
      return { ...shared, id: layer.id, stored, open: () => service.openLayer(image, layer.id, undefined) };
    }
    const id = clampTo === undefined ? layer.id : `${layer.id} until ${clampTo}`;
    return { ...shared, id, open: () => service.openLayer(image, layer.id, clampTo) };
  });
}

function wholeImage(service: Service, image: string, times: TimeOptions): LayerContent {
  if (times.rewritesTimestamps) {
    throw new BoughError(`${service.address} sends files with the times that they have`, {
      hint: "Timestamps are rewritten for images of the embedded engine, and of `bough engine serve`.",
    });
  }
  // When it was made is not the service's to say, and the same image is to make the same bytes.
  const created = timeOf((times.epoch ?? 0) * 1000, times);
  return { created, createdBy: "bough", open: () => service.openArchive(image, "/") };
}

function timeOf(milliseconds: number, { epoch }: TimeOptions): string {
  const clamped = epoch === undefined ? milliseconds : Math.min(milliseconds, epoch * 1000);
  return new Date(clamped).toISOString();
}

/** Layers that were written before need not be made again to know their digests: a registry may have them. */
export function withKnownLayers(
  content: ImageContent,
  facts: Pick<FactStore, "get" | "set">,
  { compression, uses }: { compression: Compression; uses: boolean },
): ImageContent {
  const question = `layer blob ${compression}`;
  const layers = content.layers.map((layer): LayerContent => {
    const { id } = layer;
    if (id === undefined) return layer;
    const found = uses ? readBlob(facts.get(id, question)) : undefined;
    const onWritten = (blob: LayerBlob) => facts.set(id, question, JSON.stringify(blob));
    return { ...layer, onWritten, ...(found === undefined ? {} : { known: found }) };
  });
  return { ...content, layers };
}

function readBlob(text: string | undefined): LayerBlob | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as LayerBlob);
}
