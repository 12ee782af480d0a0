import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { parseReference } from "../../service/images/reference.ts";
import type { FoundImage } from "../../service/service.ts";
import { lookUpImage, rememberImage } from "../cache/image-records.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { localBaseUrl, unknownImageError, withImportHint } from "./base.ts";

/** The time limit for the import of a base image. */
export const importTimeoutSeconds = 1800;

/** An image to start or copy from. */
export interface WantedImage {
  reference: string;
  /** Set for another one than the service's own. */
  platform: string | undefined;
  /** True if it is taken for every platform. */
  suitsAll?: boolean;
}

/** Returns true if its registry may have another image of this name by now. */
export function isMutable(reference: string): boolean {
  const parsed = parseReference(reference);
  return parsed.kind === "registry" && parsed.digest === undefined;
}

/** Imports the image of a reference. `stored`: the one that builds have started from so far; `--pull` imports another one. */
export async function importBase(
  wanted: WantedImage,
  stored: FoundImage | undefined,
  build: BuildJob,
): Promise<FoundImage> {
  const { reference } = wanted;
  const parsed = parseReference(reference);
  if (parsed.kind === "uuid" || parsed.kind === "tag") throw unknownImageError(reference, build.services);
  const source =
    parsed.kind === "local"
      ? { url: localBaseUrl(parsed, { ...build.asked, ...build.source }), tag: undefined }
      : { url: parsed.url, tag: await freeTag(reference, parsed.tag, build.services) };
  return importSource(wanted, source, stored, build);
}

/** Imports the image of a reference from an address. */
export async function importSource(
  { reference, platform }: WantedImage,
  source: Pick<BaseSource, "url" | "tag">,
  stored: FoundImage | undefined,
  build: BuildJob,
): Promise<FoundImage> {
  const isRegistry = source.url.startsWith("docker://");
  const declared = isRegistry ? await declareBase({ ...source, platform }, build.services) : undefined;
  if (declared !== undefined) {
    if (stored !== undefined)
      warnOfMovedTag({ reference, platform }, { from: stored.uuid, to: declared.uuid }, build);
    rememberImage(reference, declared.uuid, build.services.store, platform);
    return declared;
  }
  const image = await importFrom(reference, { ...source, platform }, build).catch(async (error: unknown) => {
    throw await withImportHint(error, { reference, platform }, stored, build);
  });
  if (stored !== undefined) warnOfMovedTag({ reference, platform }, { from: stored.uuid, to: image }, build);
  // A local path means another image in every context.
  if (isRegistry) rememberImage(reference, image, build.services.store, platform);
  return describeImported(image, build.services);
}

/** An image's address, and the tag and the platform that it is to have. */
interface BaseSource {
  url: string;
  tag: string | undefined;
  platform: string | undefined;
}

/** Declares the image's layers to the service, if the build has a cache with which they may not have to be fetched. */
async function declareBase(
  { url, tag, platform }: BaseSource,
  services: BuildServices,
): Promise<FoundImage | undefined> {
  const { remoteBases, signal } = services;
  try {
    const image = await remoteBases?.declare(url, tag, platform);
    // Requested by the build's own client, which learns the service's features from the response.
    return image === undefined ? undefined : await describeImported(image, services);
  } catch (error) {
    signal.throwIfAborted();
    // An import finds more registries, or says what is wrong.
    if (!(error instanceof BoughError)) throw error;
    return undefined;
  }
}

export function importFrom(
  reference: string,
  { url, tag, platform }: BaseSource,
  { services, emit }: BuildJob,
): Promise<string> {
  emit({ type: "importing", reference, url });
  // Known when the import ends, without another round trip.
  void services.supports.imageDetails();
  return services.service.importImage({
    ...{ url, tag, platform },
    timeoutSeconds: importTimeoutSeconds,
    onProgress: (message) => emit({ type: "import-progress", message }),
  });
}

/** Returns an image that was just imported or declared, with all that the service says of an image. */
export async function describeImported(
  uuid: string,
  { service, supports }: BuildServices,
): Promise<FoundImage> {
  if (!(await supports.imageDetails())) return { uuid };
  const found = await service.findImage(uuid);
  return found === undefined || found === "unsupported" ? { uuid } : found;
}

/**
 * Returns the tag for an import. None if the service does not take it, or for a `docker://` address if an image has it: such a
 * reference is not found by its tag.
 */
async function freeTag(
  reference: string,
  tag: string | undefined,
  { service, supports }: BuildServices,
): Promise<string | undefined> {
  if (tag === undefined || !(await supports.tag(tag))) return undefined;
  if (!reference.startsWith("docker://")) return tag;
  return (await service.findImage(tag)) === undefined ? tag : undefined;
}

/** Warns if `--pull` moves a tag from an image that was not imported: that may be somebody's work. */
function warnOfMovedTag(
  { reference, platform }: WantedImage,
  { from, to }: { from: string; to: string },
  { services, emit }: BuildJob,
): void {
  if (from === to || lookUpImage(reference, services.store, platform) === from) return;
  const message = wording`${{ option: "pull" }}: ${reference} was image ${from}; ${{ command: "tag", words: [from, reference] }} moves the tag back`;
  emit({ type: "warning", message, line: undefined });
}
