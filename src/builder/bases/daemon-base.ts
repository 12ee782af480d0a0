/** Images of docker's daemon to start or copy from. */
import { BoughError } from "../../errors.ts";
import { canRunOn, parsePlatform } from "../../image/platform.ts";
import { sentences, wording } from "../../messages/wording.ts";
import { parseReference, type RegistryReference, withLatest } from "../../service/images/reference.ts";
import type { FoundImage } from "../../service/service.ts";
import { isTag } from "../../service/wire/image.ts";
import { lookUpImage, rememberImage } from "../cache/image-records.ts";
import type { BuildJob, BuildServices, DaemonImage, DaemonImages } from "../job.ts";
import { servicePlatform, withStageHint } from "./base.ts";
import { describeImported, importFrom, importSource, type WantedImage } from "./import-base.ts";

/**
 * Finds the image of a name where bough replaces docker's builder: the daemon's, unless `--pull` is given, else the one that the
 * registry has now. Names of bough's own store are not used: `docker images` does not show them, and `docker rmi` can't remove them.
 */
export async function findAsDocker(
  wanted: WantedImage,
  daemon: DaemonImages,
  build: BuildJob,
): Promise<FoundImage> {
  const name = parseReference(wanted.reference);
  if (name.kind !== "registry") throw new Error("only a name of a registry means an image there");
  const local = build.asked.pullsImages ? undefined : await findIn(daemon, name, wanted, build);
  return local ?? (await findInRegistry(name, wanted, build));
}

/** Finds the image that docker's daemon has under a name, which an address of a registry is not. */
export async function findWithDaemon(wanted: WantedImage, build: BuildJob): Promise<FoundImage | undefined> {
  const { reference } = wanted;
  const { daemonImages } = build.services;
  const name = reference.startsWith("docker://") ? undefined : parseReference(reference);
  return daemonImages && name?.kind === "registry" ? findIn(daemonImages, name, wanted, build) : undefined;
}

async function findIn(
  daemon: DaemonImages,
  { url }: RegistryReference,
  wanted: WantedImage,
  build: BuildJob,
): Promise<FoundImage | undefined> {
  const { reference, platform } = wanted;
  const { store, supports } = build.services;
  // Whole: docker also finds images by the beginning of their ids.
  const name = url.slice("docker://".length);
  const found = await daemon.find(name, platform ? parsePlatform(platform) : await servicePlatform(supports));
  if (found === undefined) return undefined;
  const known = await findKnown(found, wanted, build.services);
  if (known !== undefined) return known;
  using archive = await found.save();
  const tag = daemon.decides ? undefined : await ownTag(wanted, build.services);
  const image = await importFrom(reference, { url: archive.url, tag, platform }, build);
  rememberImage(found.id, image, store, platform);
  if (!daemon.decides) {
    rememberImage(reference, image, store, platform);
    store.imageMetadata.set(image, daemonName, reference);
  }
  return describeImported(image, build.services);
}

/** Returns true for an image that was taken from docker's daemon under this name: the daemon may have another one by now. */
export function isOfDaemon(
  { uuid }: FoundImage,
  { reference }: WantedImage,
  { store }: BuildServices,
): boolean {
  return store.imageMetadata.get(uuid, daemonName) === reference;
}

const daemonName = "name in docker's daemon";

/** Finds an image of the daemon's that bough has built, or taken from there or from a registry before. */
async function findKnown(
  { id, repoDigests }: DaemonImage,
  { platform }: WantedImage,
  { service, store, supports }: BuildServices,
): Promise<FoundImage | undefined> {
  const wanted = platform ? parsePlatform(platform) : await servicePlatform(supports);
  for (const name of [id, ...repoDigests]) {
    const image = lookUpImage(name, store, platform);
    const found = image === undefined ? undefined : await service.findImage(image);
    if (found === undefined || found === "unsupported") continue;
    if (found.platform === undefined || canRunOn(parsePlatform(found.platform), wanted)) return found;
  }
  return undefined;
}

/** Finds the image that its registry has under a name now. It is imported if this one has not been. */
async function findInRegistry(
  name: RegistryReference,
  wanted: WantedImage,
  build: BuildJob,
): Promise<FoundImage> {
  const { reference, platform } = wanted;
  const { service, store } = build.services;
  try {
    const digest = await findDigest(reference, name, build);
    const url = `${name.address}@${digest}`;
    const known = lookUpImage(url, store, platform);
    const found = known === undefined ? undefined : await service.findImage(known);
    if (found !== undefined && found !== "unsupported") return found;
    const source = { url, tag: await ownTag(wanted, build.services) };
    const image = await importSource(wanted, source, undefined, build);
    rememberImage(url, image.uuid, store, platform);
    return image;
  } catch (error) {
    throw await withOtherImage(error, wanted, build);
  }
}

async function findDigest(
  reference: string,
  { url, address, reference: tag }: RegistryReference,
  build: BuildJob,
): Promise<string> {
  const { openRegistry, signal } = build.services;
  const name = url.slice("docker://".length);
  const failed = (reason: string, error?: BoughError) =>
    withStageHint(
      new BoughError(`${reference}: failed to resolve source metadata for ${name}: ${reason}`, {
        hint: error?.hint,
        cause: error,
      }),
      reference,
      build.asked,
    );
  const registry = await openRegistry(address);
  const digest = await registry.findDigest(tag, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error instanceof BoughError ? failed(error.message, error) : error;
  });
  if (digest === undefined) throw failed("not found");
  return digest;
}

/** Returns the tag for an import; `undefined` if it names an image that was not imported: that may be somebody's work. */
async function ownTag(
  { reference, platform }: WantedImage,
  { service, supports, store }: BuildServices,
): Promise<string | undefined> {
  const tag = withLatest(reference);
  if (!isTag(tag) || !(await supports.tag(tag))) return undefined;
  const holder = await service.findImage(tag, platform);
  const isFree =
    holder === undefined ||
    (holder !== "unsupported" && holder.uuid === lookUpImage(reference, store, platform));
  return isFree ? tag : undefined;
}

/** Adds a hint about an image of that name that the build does not use, and how it would. */
async function withOtherImage(error: unknown, wanted: WantedImage, build: BuildJob): Promise<unknown> {
  if (!(error instanceof BoughError) || build.services.signal.aborted) return error;
  const { reference, platform } = wanted;
  const { service } = build.services;
  const own = await service.findImage(withLatest(reference), platform);
  const hints = [
    error.hint,
    build.asked.pullsImages
      ? wording`Without ${{ option: "pull" }} an image of that name that docker has is taken.`
      : own === undefined || own === "unsupported"
        ? undefined
        : wording`bough's own store has an image of that name, and docker has none: \`${{ command: "images export", words: [reference, "docker-archive:-"], isLine: true }} | docker load\` gives it to docker.`,
  ];
  return new BoughError(error.wording, {
    kind: error.kind,
    hint: sentences(hints),
    cause: error,
  });
}
