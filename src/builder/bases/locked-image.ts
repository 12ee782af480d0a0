import { BoughError } from "../../errors.ts";
import { formatPlatform, isSamePlatform, type Platform } from "../../image/platform.ts";
import { type Message, sentences, wording } from "../../messages/wording.ts";
import type { BlobSource, StoredManifest } from "../../registry/blob-store.ts";
import { asRecord, asText, parseRecord } from "../../service/http/json.ts";
import { parseReference, type RegistryReference } from "../../service/images/reference.ts";
import { isTag } from "../../service/wire/image.ts";
import { baseHash } from "../cache/chain-hash.ts";
import { lookUpImage, rememberImage } from "../cache/image-records.ts";
import { imageReference } from "../contexts/named-context.ts";
import type { BaseImage, BuildJob, BuildServices } from "../job.ts";
import type { ReferenceLock } from "../reference-lock.ts";
import type { EvictableImage, Layer } from "../state/layer.ts";
import { scratch, servicePlatform } from "./base.ts";
import { findBaseImage, findStored } from "./find-image.ts";

/** `reference`: the name with the lock's digest. */
type LockedImage = BaseImage & { reference: string };

/** Finds the image of a reference, by the digest that the build's lock has for it. */
export async function findLockedImage(
  name: string,
  platform: Platform | undefined,
  build: BuildJob,
): Promise<LockedImage> {
  const { lock } = build;
  const registry = lock === undefined ? undefined : registryOf(name, lock);
  if (lock === undefined || registry === undefined) {
    const pin = build.asked.pins?.images.get(name);
    const reference = pin === undefined ? name : withDigest(name, pin);
    return { ...(await findBaseImage(reference, platform, build)), reference };
  }
  const digest = await lock.pin(
    "image",
    name,
    async () => build.asked.pins?.images.get(name) ?? findDigest(name, platform, registry, build),
  );
  const reference = withDigest(name, digest);
  try {
    return { ...(await findBaseImage(reference, platform, build)), reference };
  } catch (error) {
    if (!(error instanceof BoughError) || error.kind !== "failed") throw error;
    const hint = sentences([error.hint, lock.adviceFor(name)]);
    throw new BoughError(error.wording, { hint, cause: error });
  }
}

/** Returns a reference that may get another digest in its registry; `undefined` for all other references. */
function registryOf(name: string, lock: ReferenceLock): RegistryReference | undefined {
  const parsed = name === scratch ? undefined : parsedOrNone(name);
  // Some tags of a service are not valid in a registry.
  if (parsed === undefined ? name !== scratch : parsed.kind === "tag") lock.leaveOut(name);
  return parsed?.kind === "registry" && parsed.digest === undefined ? parsed : undefined;
}

function parsedOrNone(name: string) {
  try {
    return parseReference(name);
  } catch (error) {
    // The build itself refuses the others.
    if (error instanceof BoughError && isTag(name)) return undefined;
    throw error;
  }
}

/** The tag stays in the name, for people: it has no meaning beside a digest. */
function withDigest(name: string, digest: string): string {
  return `${name}@${digest}`;
}

/**
 * Returns the digest that the registry has under the tag now. An image of the service that has this name, too, must be the registry's,
 * or have been once: somebody else's image of the same name may be what the Dockerfile means.
 */
async function findDigest(
  name: string,
  platform: Platform | undefined,
  { address, reference: tag }: RegistryReference,
  build: BuildJob,
): Promise<string> {
  const key = platform && formatPlatform(platform);
  const { openRegistry, store, signal } = build.services;
  const stored = build.asked.pullsImages
    ? undefined
    : await findStored({ reference: name, platform: key }, build);
  const isImport = stored === undefined || lookUpImage(name, store, key) === stored.uuid;
  const registry = await openRegistry(address);
  const found = await registry.getManifest(tag, signal).catch(async (error: unknown) => {
    signal.throwIfAborted();
    if (!(error instanceof BoughError)) throw error;
    const { RegistryError } = await import("../../registry/registry-error.ts");
    // Without a status, the registry was not reached.
    const said = error instanceof RegistryError && error.status !== undefined ? error.hint : undefined;
    throw unlockable(name, error.message, isImport, { said, cause: error });
  });
  if (found === undefined)
    throw unlockable(name, `${address.slice("docker://".length)} has no tag ${tag}`, isImport);
  if (stored === undefined) return found.digest;
  if (await isSameImage(stored, found, platform, registry, build.services)) {
    // The digest means an image that the service has: nothing is to be imported.
    rememberImage(withDigest(name, found.digest), stored.uuid, store, key);
    return found.digest;
  }
  if (isImport) return found.digest;
  throw unlockable(name, `it is image ${stored.uuid} of the service, and another one in the registry`, false);
}

/** `isImport`: false if another image of the service has the name. `said`: the hint of the registry's error. */
function unlockable(
  name: string,
  reason: string,
  isImport: boolean,
  { said, cause }: { said?: Message | undefined; cause?: unknown } = {},
): BoughError {
  const own = said ?? "Check the name, and that this machine can reach its registry.";
  const hint = isImport
    ? own
    : wording`A lock has images of registries: ${{ option: "pull" }} takes that, and ${{ option: "build-context" }} ${name}=docker-image://tag:${name} the service's, which stays out of the lock.`;
  return new BoughError(`${name} cannot be locked: ${reason}`, { hint, cause });
}

/** Returns true if the stored image has the configuration digest that the registry's image has for the platform. */
async function isSameImage(
  { identity }: BaseImage,
  found: StoredManifest,
  platform: Platform | undefined,
  registry: Pick<BlobSource, "getManifest">,
  { supports, signal }: BuildServices,
): Promise<boolean> {
  if (identity === undefined) return false;
  const { manifestFor } = await import("./remote-base.ts");
  const manifest = await manifestFor(found, platform ?? (await servicePlatform(supports)), registry, signal);
  // If it is damaged, an import says so.
  const digest = manifest && asText(asRecord(parseRecord(manifest.bytes)?.config)?.digest);
  return digest !== undefined && identity.endsWith(` ${digest}`);
}

/** An image that a COPY or a mount takes files from, and the chain hash that stands for its contents. */
export interface SourceImage {
  /** UUID. */
  image: string;
  hash: string;
  /** Set if the service may have lost the image: then the build can make or import it again. */
  evictable: EvictableImage | undefined;
}

/** Returns the image that `from` names. `stage`: the result of the stage that has this name. */
export async function findImageSource(
  from: string,
  stage: Layer | undefined,
  build: BuildJob,
): Promise<SourceImage> {
  if (stage !== undefined) return { image: stage.image, hash: stage.hash, evictable: stage };
  const { build: own, target } = build.platforms ?? {};
  // As in Docker, whatever the platform of the stage itself.
  const platform = own && target && !isSamePlatform(own, target) ? target : undefined;
  const found = await findLockedImage(imageReference(from, build.asked.contexts), platform, build);
  const hash = baseHash(found, build.services.service);
  const { uuid: image, isRemembered } = found;
  // Otherwise the service has just confirmed that it has the image.
  const evictable = isRemembered === true ? ({ isRemembered, hash, image } as const) : undefined;
  return { image, hash, evictable };
}
