import { isDigest } from "../../image/digest.ts";
import { findTable } from "../../image/layer-table.ts";
import { indexTypes } from "../../image/oci-layout.ts";
import { canRunOn, chooseBestImage, type Platform, parsePlatform } from "../../image/platform.ts";
import { type BlobSource, parseDescriptor, type StoredManifest } from "../../registry/blob-store.ts";
import { readImageConfig } from "../../registry/image-config.ts";
import { registryHost } from "../../registry/repository.ts";
import type { Service } from "../../service/client.ts";
import { asRecord, asText, type JsonRecord, parseRecord } from "../../service/http/json.ts";
import { parseReference } from "../../service/images/reference.ts";
import type { RemoteBases } from "../job.ts";
import { supportOf } from "../service-support.ts";
import { servicePlatform } from "./base.ts";

interface RemoteBasesOptions {
  service: Pick<Service, "capabilities" | "declareImage">;
  openSource(address: string): BlobSource;
  /** The host of the registry whose images are declared; by default, those of every registry. */
  registry?: string;
  /** Set if tables of contents are declared, too. `areRequired`: an image is declared only if all of its layers have one. */
  tables?: { areRequired: boolean };
  /** Called with each declared image. */
  onDeclared?(image: string, diffIds: readonly string[]): void;
  signal: AbortSignal;
}

export function createRemoteBases({
  service,
  openSource,
  registry,
  tables,
  onDeclared,
  signal,
}: RemoteBasesOptions): RemoteBases {
  return {
    async declare(url, tag, platform) {
      const parsed = parseReference(url);
      if (parsed.kind !== "registry") return undefined;
      const { address, reference } = parsed;
      if (registry !== undefined && registryHost(address.slice("docker://".length)) !== registry)
        return undefined;
      const store = openSource(address);
      const wanted =
        platform === undefined ? await servicePlatform(supportOf(service)) : parsePlatform(platform);
      const found = await readImage(store, reference, wanted, signal);
      if (found === undefined) return undefined;
      const { configuration, layers } = found;
      if (tables?.areRequired === true && layers.some(({ table }) => table === undefined)) return undefined;
      const { image } = await service.declareImage({
        source: address,
        configuration,
        layers: tables !== undefined ? layers : layers.map(({ table: _, ...layer }) => layer),
        ...(tag !== undefined && { tag }),
      });
      onDeclared?.(
        image,
        layers.map(({ diff_id }) => diff_id),
      );
      return image;
    },
  };
}

async function readImage(store: BlobSource, reference: string, platform: Platform, signal: AbortSignal) {
  const top = await store.getManifest(reference, signal);
  const manifest = top && (await manifestFor(top, platform, store, signal));
  const record = manifest && parseRecord(manifest.bytes);
  const config = manifest && (await readImageConfig(manifest, store, signal));
  const blobs = Array.isArray(record?.layers) ? record.layers.map(readLayer) : undefined;
  if (config === undefined || blobs === undefined) return undefined;
  const configuration = config.bytes.toString();
  const described = parseRecord(config.bytes);
  // An import says which platform the image is for.
  const own = platformIn(described);
  if (own === undefined || !canRunOn(own, platform)) return undefined;
  const diffIds = asRecord(described?.rootfs)?.diff_ids;
  if (!Array.isArray(diffIds) || diffIds.length !== blobs.length) return undefined;
  const layers = blobs.flatMap((blob, at) => {
    const diffId: unknown = diffIds[at];
    return blob === undefined || !isDigest(diffId)
      ? []
      : [
          {
            media_type: blob.mediaType,
            digest: blob.digest,
            size: blob.size,
            diff_id: diffId,
            table: blob.table,
          },
        ];
  });
  return layers.length === blobs.length ? { configuration, layers } : undefined;
}

/** Reads the descriptor of a layer, with the place of its table of contents. */
function readLayer(value: unknown) {
  const blob = parseDescriptor(value);
  return blob && { ...blob, table: findTable(asRecord(value)?.annotations, blob.size) };
}

/** Returns the manifest itself, or that of the platform if it is an index of several. */
export async function manifestFor(
  found: StoredManifest,
  platform: Platform,
  store: Pick<BlobSource, "getManifest">,
  signal: AbortSignal,
): Promise<StoredManifest | undefined> {
  if (!indexTypes.includes(found.mediaType)) return found;
  const listed = parseRecord(found.bytes)?.manifests;
  const described = Array.isArray(listed)
    ? listed.map(asRecord).flatMap((entry) => {
        const own = platformIn(asRecord(entry?.platform));
        return own === undefined ? [] : [{ digest: entry?.digest, own }];
      })
    : [];
  const wanted = chooseBestImage(described, platform, ({ own }) => own);
  const digest = wanted?.digest;
  return isDigest(digest) ? store.getManifest(digest, signal) : undefined;
}

/** Reads the platform in an image's configuration or in an entry of an index. */
export function platformIn(record: JsonRecord | undefined): Platform | undefined {
  const { os, architecture, variant } = record ?? {};
  const written = [os, architecture, variant].map(asText).filter((part) => part !== undefined && part !== "");
  try {
    return written.length > 1 ? parsePlatform(written.join("/")) : undefined;
  } catch {
    return undefined;
  }
}
