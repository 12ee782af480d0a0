import { BoughError } from "../../errors.ts";
import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { formatPlatform, type Platform } from "../../image/platform.ts";
import { createSingleFlight } from "../../once.ts";
import type { BlobSource } from "../../registry/blob-store.ts";
import { readImageConfig } from "../../registry/image-config.ts";
import { asRecord, parseRecord } from "../../service/http/json.ts";
import { otherName, parseReference, type RegistryReference } from "../../service/images/reference.ts";
import type { FoundImage, ImageService } from "../../service/service.ts";
import type { Store } from "../../store/store.ts";
import { scratch, servicePlatform } from "../bases/base.ts";
import { manifestFor } from "../bases/remote-base.ts";
import { baseHash } from "../cache/chain-hash.ts";
import { lookUpImage, rememberImage } from "../cache/image-records.ts";
import type { BuildServices } from "../job.ts";
import type { ReferenceLock } from "../reference-lock.ts";
import type { ServiceSupport } from "../service-support.ts";
import type { BaseKey } from "./key-job.ts";

interface BaseKeysOptions extends Pick<BuildServices, "openRegistry" | "signal"> {
  service: Pick<ImageService, "findImage" | "base">;
  supports: Pick<ServiceSupport, "platform">;
  store: Pick<Store, "imports">;
  lock: ReferenceLock | undefined;
  /** `--pull` */
  pullsImages: boolean;
}

/** The images that targets start from, each found once for all targets of a command. */
export interface BaseKeys {
  /** @param platform set for another one than the service's own */
  find(reference: string, platform: Platform | undefined): Promise<BaseKey>;
  /** The digests of the references in their registries. A build starts from these, so that its key is true. */
  readonly pins: ReadonlyMap<string, string>;
}

/**
 * Resolves references in their registries, by manifest and configuration: earlier imports of this machine make no difference. An image
 * that only the service has is identified by its content, if the service reports that.
 */
export function createBaseKeys(options: BaseKeysOptions): BaseKeys {
  const { service, store, lock, pullsImages, signal } = options;
  const pins = new Map<string, string>();
  const found = createSingleFlight<BaseKey>({ keeps: true });

  async function resolve(reference: string, platform: Platform | undefined): Promise<BaseKey> {
    if (reference === scratch)
      return { hash: baseHash({ uuid: scratch, identity: scratch }, service), config: { WorkingDir: "/" } };
    const parsed = parseReference(reference);
    const stored = await findStored(reference, platform);
    const key = platform && formatPlatform(platform);
    const isOwn = stored !== undefined && lookUpImage(reference, store, key) !== stored.uuid;
    if (parsed.kind !== "registry" || (isOwn && !pullsImages && lock === undefined))
      return described(reference, stored);
    try {
      return await findInRegistry(reference, parsed, { platform, stored, key });
    } catch (error) {
      signal.throwIfAborted();
      // The build could not reach the registry, either: it starts from the stored image.
      if (!(error instanceof BoughError) || stored === undefined || lock !== undefined) throw error;
      return described(reference, stored);
    }
  }

  async function findStored(reference: string, platform: Platform | undefined) {
    const key = platform && formatPlatform(platform);
    const other = otherName(reference);
    const found =
      (await service.findImage(reference, key)) ??
      (other === undefined ? undefined : await service.findImage(other, key));
    return found === "unsupported" ? undefined : found;
  }

  async function findInRegistry(
    reference: string,
    { address, reference: tag, digest }: RegistryReference,
    {
      platform,
      stored,
      key,
    }: { platform: Platform | undefined; stored: FoundImage | undefined; key: string | undefined },
  ): Promise<BaseKey> {
    const registry = await options.openRegistry(address);
    const find = async () => requireManifest(await registry.getManifest(tag, signal), reference);
    const pinned =
      digest === undefined && lock !== undefined
        ? await lock.pin("image", reference, async () => (await find()).digest)
        : undefined;
    const top =
      pinned === undefined
        ? await find()
        : requireManifest(await registry.getManifest(pinned, signal), reference);
    const wanted = platform ?? (await servicePlatform(options.supports));
    const { configDigest, config } = await readImage(top, wanted, registry, reference);
    const identity = `${formatPlatform(wanted)} ${configDigest}`;
    if (digest === undefined) {
      pins.set(reference, top.digest);
      // The digest means an image that the service has: nothing is to be imported.
      if (stored?.identity === identity) rememberImage(`${reference}@${top.digest}`, stored.uuid, store, key);
    }
    return { hash: baseHash({ uuid: identity, identity }, service), config };
  }

  async function readImage(
    top: ReturnType<typeof requireManifest>,
    platform: Platform,
    registry: Pick<BlobSource, "getManifest" | "openBlob">,
    reference: string,
  ): Promise<{ configDigest: string; config: ImageConfig }> {
    const manifest = await manifestFor(top, platform, registry, signal);
    const read = manifest && (await readImageConfig(manifest, registry, signal));
    if (read === undefined) throw new BoughError(`${reference} has no image for ${formatPlatform(platform)}`);
    const fields = asRecord(parseRecord(read.bytes)?.config) ?? {};
    return { configDigest: read.digest, config: parseImageConfig(fields) };
  }

  function described(reference: string, image: FoundImage | undefined): BaseKey {
    if (image?.config !== undefined) return { hash: baseHash(image, service), config: image.config };
    throw new BoughError(
      `${reference} has no content key: ${image === undefined ? "there is no such image" : "the service does not report its configuration"}`,
      {
        hint: "Start from an image of a registry, or build on a service that reports configurations.",
      },
    );
  }

  return {
    pins,
    find: (reference, platform) =>
      found(JSON.stringify([reference, platform && formatPlatform(platform)]), () =>
        resolve(reference, platform),
      ),
  };
}

function requireManifest(found: Awaited<ReturnType<BlobSource["getManifest"]>>, reference: string) {
  if (found !== undefined) return found;
  throw new BoughError(`its registry has no ${reference}`, { hint: "Check the name." });
}
