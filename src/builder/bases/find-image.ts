import { BoughError } from "../../errors.ts";
import { isDigest } from "../../image/digest.ts";
import {
  canRunOn,
  defaultPlatform,
  formatPlatform,
  type Platform,
  parsePlatform,
  requirePlatform,
} from "../../image/platform.ts";
import { isUuid, otherName, parseReference, withLatest } from "../../service/images/reference.ts";
import type { FoundImage } from "../../service/service.ts";
import { isTag } from "../../service/wire/image.ts";
import { lookUpImage, lookUpNamedImage, rememberImage } from "../cache/image-records.ts";
import type { BaseImage, BuildJob, BuildServices } from "../job.ts";
import { requireBase, scratch, servicePlatform } from "./base.ts";
import { findAsDocker, findWithDaemon, isOfDaemon } from "./daemon-base.ts";
import {
  describeImported,
  importBase,
  importTimeoutSeconds,
  isMutable,
  type WantedImage,
} from "./import-base.ts";

/**
 * Finds the image of a reference. Imports it once for all stages, if the service lacks it. `platform`: set for another one than
 * the service's own.
 */
export async function findBaseImage(
  name: string,
  platform: Platform | undefined,
  build: BuildJob,
): Promise<BaseImage> {
  const reference = await chooseLinked(name, platform, build);
  const suitsAll = isLinkedForAll(name, build);
  const wanted = {
    reference,
    platform: suitsAll ? undefined : platform && formatPlatform(platform),
    suitsAll,
  };
  const found = await build.shared.images(JSON.stringify(wanted), () => resolveImage(wanted, build));
  build.inputs?.image(reference, found.uuid);
  return found;
}

/** Returns the image for the platform that another target has, if `name` is one of its images; otherwise the name itself. */
async function chooseLinked(
  name: string,
  platform: Platform | undefined,
  { asked, services }: BuildJob,
): Promise<string> {
  const images = asked.linked?.get(name) ?? [];
  if (images.length === 0) return name;
  const wanted = formatPlatform(platform ?? (await servicePlatform(services.supports)));
  return images.find((image) => image.platform === wanted)?.image ?? name;
}

/** Returns true for the only image of another target, which docker buildx bake uses for every platform. */
export function isLinkedForAll(name: string, { asked }: BuildJob): boolean {
  return asked.linked?.get(name)?.length === 0;
}

async function resolveImage(wanted: WantedImage, build: BuildJob): Promise<BaseImage> {
  const { service, supports } = build.services;
  const { reference, platform } = wanted;
  await requireBase(reference, supports);
  if (reference === scratch) {
    const image = await service.importImage({ url: scratch, platform, timeoutSeconds: importTimeoutSeconds });
    return describeImported(image, build.services);
  }
  const { daemonImages } = build.services;
  const decides = daemonImages?.decides === true;
  // Only bough finds an image by its id.
  if (decides && isTag(reference) && isMutable(reference) && !isDigest(reference))
    return findAsDocker(wanted, daemonImages, build);
  const stored = await findStored(wanted, build);
  const mayImport = stored === undefined || (build.asked.pullsImages && isMutable(reference));
  if (!mayImport) {
    const newer = isOfDaemon(stored, wanted, build.services)
      ? await findWithDaemon(wanted, build)
      : undefined;
    return withIdentity(newer ?? stored, wanted);
  }
  const isPulled = build.asked.pullsImages && isMutable(reference);
  const local = isPulled ? undefined : await findWithDaemon(wanted, build);
  if (local !== undefined) return withIdentity(local, wanted);
  const found = await importBase(wanted, stored, build).catch(async (error: unknown) => {
    build.services.signal.throwIfAborted();
    if (!(error instanceof BoughError) || stored !== undefined || isPulled) throw error;
    const older = await findOlder(wanted, build);
    if (older === undefined) throw error;
    // Like Docker, later builds take an image of this machine that suits without asking the registry, until --pull.
    rememberImage(reference, older.uuid, build.services.store, platform);
    return older;
  });
  return withIdentity(found, wanted);
}

/** Finds an image that needs no import: by its UUID or tag, by a digest that it was written with, or as an earlier build imported it. */
export async function findStored(wanted: WantedImage, build: BuildJob): Promise<BaseImage | undefined> {
  const { service, supports, store } = build.services;
  const { reference, platform } = wanted;
  const written = isDigest(reference) ? lookUpImage(reference, store, platform) : undefined;
  const finding = service.findImage(written ?? reference, platform);
  const other = findUnderOtherName(wanted, build);
  const listed = await finding;
  const found = (await isForeign(listed, wanted, build.services)) ? undefined : listed;
  if (found !== undefined && found !== "unsupported") {
    if (isTag(reference)) store.imageMetadata.listedNames.add(reference);
    return found;
  }
  const isFoundByTag = isTag(reference) && (await supports.tag(withLatest(reference)));
  const remembered = recall(wanted, build);
  // Other lists may show only a part of the images: what this machine has imported is there until a call that needs it fails.
  const isBelieved = remembered !== undefined && !(await supports.listsAllImages());
  if (isFoundByTag && found === undefined && !isBelieved) return other();
  // No tag can stand for a digest or a docker:// address.
  if (remembered === undefined) return undefined;
  const again = isBelieved ? "unsupported" : await service.findImage(remembered);
  if (again === undefined) store.imports.forgetImage(remembered);
  return again && { ...(again === "unsupported" ? { uuid: remembered } : again), isRemembered: true };
}

/**
 * Finds an image for an older variant of the platform, which runs there as well. Its registry comes first, since it may have one for
 * this variant.
 */
async function findOlder({ reference, platform }: WantedImage, { services }: BuildJob) {
  if (platform === undefined || !isTag(reference)) return undefined;
  const found = await services.service.findImage(reference, platform);
  return found === "unsupported" ? undefined : found;
}

/** Returns true for an image that has the tag for another platform only. */
async function isForeign(
  found: FoundImage | undefined | "unsupported",
  { reference, platform, suitsAll }: WantedImage,
  { supports, store }: Pick<BuildServices, "supports" | "store">,
): Promise<boolean> {
  if (found === undefined || found === "unsupported" || !isTag(reference)) return false;
  if (found.platform === undefined) return false;
  if (isUuid(reference)) {
    if (suitsAll !== true)
      requirePlatform(found.platform, platform ?? formatPlatform(await servicePlatform(supports)), reference);
    return false;
  }
  // An older variant has been imported for this one if its registry has nothing better.
  if (platform !== undefined)
    return found.platform !== platform && lookUpImage(reference, store, platform) !== found.uuid;
  return !canRunOn(parsePlatform(found.platform), await servicePlatform(supports));
}

/**
 * Finds an image whose tag Docker takes for the same name. It is looked up at once, unless the image had the written name before:
 * then only if that is gone. `--pull` imports the image under the written name.
 */
function findUnderOtherName({ reference, platform }: WantedImage, { services, asked }: BuildJob) {
  const { service, store, layers } = services;
  const other = asked.pullsImages ? undefined : otherName(reference);
  const find = async () => {
    if (other === undefined) return undefined;
    const found = await service.findImage(other, platform);
    const isOther = await isForeign(found, { reference: other, platform }, services);
    return found === "unsupported" || isOther ? undefined : found;
  };
  // A build that shares layers most likely shares the image as well, so the second lookup waits until it is needed.
  const isKnown =
    layers.hasOthers ||
    store.imageMetadata.listedNames.has(reference) ||
    lookUpImage(reference, store, platform) !== undefined;
  if (isKnown) return find;
  const finding = find();
  // If the image is found under the written name, nothing waits for the other.
  finding.catch(() => undefined);
  return () => finding;
}

/** Returns the image that this machine has imported or tagged under the reference, or under the other name of it. */
function recall({ reference, platform }: WantedImage, { services, asked }: BuildJob): string | undefined {
  const other = asked.pullsImages ? undefined : otherName(reference);
  const { store } = services;
  return lookUpNamedImage(reference, store, platform) ?? (other && lookUpNamedImage(other, store, platform));
}

/**
 * A digest identifies an image on a service that does not. Imported again, or by another machine, it is still the same base for
 * the chain hash.
 */
function withIdentity(found: BaseImage, { reference, platform }: WantedImage): BaseImage {
  if (found.identity !== undefined || isTag(reference)) return found;
  const parsed = parseReference(reference);
  if (parsed.kind !== "registry" || parsed.digest === undefined) return found;
  return { ...found, identity: `${platform ?? defaultPlatform} ${parsed.digest}` };
}
