/** Makes an index of images of registries, and writes it under tags. */
import { platformIn } from "../../builder/bases/remote-base.ts";
import { BoughError, usageError } from "../../errors.ts";
import { formatPlatform, isSamePlatform, type Platform } from "../../image/platform.ts";
import type { BlobSource, BlobStore, StoredManifest } from "../../registry/blob-store.ts";
import { asInteger, asRecord, asText, type JsonRecord } from "../../service/http/json.ts";
import type { Log } from "../../terminal/log.ts";
import type { Annotation } from "../export/annotations.ts";
import type { ImageName } from "./image-name.ts";
import {
  copyEntry,
  encodeIndex,
  type FoundEntry,
  isAttestation,
  isIndexType,
  mergeByDigest,
  mergeByPlatform,
  parseManifest,
  platformFrom,
  platformOf,
  type ReadImage,
  readAnnotations,
  readEntries,
  readImageEntries,
  subjectOf,
} from "./platform-index.ts";

interface IndexRequest {
  sources: readonly IndexSource[];
  /** An image replaces those for the same platform, or only one with the same digest, as docker buildx has it. */
  replaces: "platform" | "digest";
  annotations: readonly Annotation[];
  /** False: the manifest of one image stays as it is. An index stays so in any case. */
  prefersIndex: boolean;
  /** Only images for these are named. Empty: all. */
  platforms: readonly Platform[];
}

export interface IndexSource {
  name: ImageName;
  /** What its entry says instead of what is found. */
  descriptor?: JsonRecord;
  /** True for the index that is added to: its annotations stay. */
  isBase?: boolean;
}

interface MadeIndex {
  manifest: Pick<StoredManifest, "mediaType" | "bytes" | "digest">;
  /** What it names; of one image without an index, the image. */
  entries: readonly FoundEntry[];
}

/** Makes an index, without writing it. `open`: opens the repository at an address. */
export async function makeIndex(
  request: IndexRequest,
  open: (address: string) => BlobSource,
  signal: AbortSignal,
): Promise<MadeIndex> {
  const { sources, annotations, platforms, replaces } = request;
  const read = await Promise.all(
    sources.map(async ({ name, descriptor, isBase }) => {
      const image = await readEntries(open(name.address), name.reference, signal);
      return { ...describe(image, descriptor), isBase };
    }),
  );
  const [first] = read;
  if (read.length === 1 && first !== undefined && annotations.length === 0 && staysAsItIs(first, request))
    return filterPlatforms(first, platforms);

  const found: FoundEntry[] = [];
  for (const image of read) {
    // Many programs look only into the first index: those in it are taken apart. docker buildx leaves them.
    const isTakenApart = replaces === "platform" && image.isIndex;
    found.push(...(isTakenApart ? await readImageEntries(image, signal) : image.entries));
  }
  const entries = annotateEntries(
    replaces === "platform" ? mergeByPlatform(found) : mergeByDigest(found),
    request,
  );
  const kept = read.find(({ isBase }) => isBase)?.annotations;
  const record = { annotations: { ...kept, ...textsOf(annotations, "index") } };
  return filterPlatforms({ manifest: encodeIndex(entries, record), entries }, platforms);
}

/** Writes an index under a tag, after all that it names. */
export async function writeIndex(
  { manifest, entries }: MadeIndex,
  tag: string,
  to: BlobStore,
  { signal, log }: { signal: AbortSignal; log: Pick<Log, "info"> },
): Promise<void> {
  for (const entry of entries) {
    if (entry.from.address === to.address) continue;
    log.info(`copying ${platformOf(entry.entry)} from ${entry.from.address.slice("docker://".length)}`);
    await copyEntry(entry, to, mountableFrom(entry.from.address, to), signal);
  }
  await to.putManifest(tag, manifest, signal);
}

function staysAsItIs({ isIndex, entries }: ReadImage, { replaces, prefersIndex }: IndexRequest): boolean {
  if (!isIndex) return !prefersIndex;
  return replaces === "digest" || entries.every(({ entry }) => !isIndexType(entry.mediaType));
}

/** Returns an image with what a given descriptor says about it. */
function describe(image: ReadImage, descriptor: JsonRecord | undefined): ReadImage {
  const [found] = image.entries;
  if (descriptor === undefined || found === undefined) return image;
  const size = asInteger(descriptor.size);
  if (size !== undefined && size !== 0 && size !== image.manifest.bytes.byteLength)
    throw new BoughError(
      `${image.manifest.digest} has ${image.manifest.bytes.byteLength} bytes, not the ${size} of its descriptor`,
    );
  if (image.isIndex) return image;
  const mediaType = asText(descriptor.mediaType);
  const annotations = readAnnotations(descriptor);
  // What it leaves out is what the image's configuration says.
  const platform = platformFrom({ ...found.entry.platform, ...asRecord(descriptor.platform) });
  const entry = {
    ...found.entry,
    ...(mediaType && { mediaType }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
    ...(platform && { platform }),
  };
  return { ...image, entries: [{ ...found, entry }] };
}

/** Leaves out images for other platforms, with their attestations. */
function filterPlatforms(made: MadeIndex, platforms: readonly Platform[]): MadeIndex {
  if (platforms.length === 0) return made;
  const { manifest, entries } = made;
  const isWanted = ({ entry }: FoundEntry) => {
    const platform = platformIn(entry.platform);
    return platform === undefined || platforms.some((wanted) => isSamePlatform(wanted, platform));
  };
  const wanted = new Set(entries.filter(isWanted).map(({ entry }) => entry.digest));
  const kept = entries.filter((found) =>
    isAttestation(found.entry) ? wanted.has(subjectOf(found.entry) ?? "") : isWanted(found),
  );
  if (kept.length === 0)
    throw usageError(
      "none of the manifests match the provided platforms",
      `There are images for ${platformsOf(entries).join(", ")}.`,
    );
  if (kept.length === entries.length) return made;
  const record = parseManifest(manifest.bytes, manifest.digest);
  return { manifest: encodeIndex(kept, record), entries: kept };
}

function platformsOf(entries: readonly FoundEntry[]): string[] {
  return entries.flatMap(({ entry }) => (isAttestation(entry) ? [] : platformOf(entry)));
}

function textsOf(annotations: readonly Annotation[], wanted: Annotation["part"]): Record<string, string> {
  const own = annotations.filter(({ part }) => part === wanted);
  return Object.fromEntries(own.map(({ key, value }) => [key, value]));
}

/** Adds annotations to the entries of images; as docker buildx, to those of attestations as well. Those for one platform replace those for each. */
function annotateEntries(
  entries: readonly FoundEntry[],
  { annotations, replaces }: Pick<IndexRequest, "annotations" | "replaces">,
): FoundEntry[] {
  const descriptors = annotations.filter(({ part }) => part === "manifest-descriptor");
  const platforms = platformsOf(entries);
  for (const { platform, text } of descriptors)
    if (platform !== undefined && !platforms.includes(formatPlatform(platform)))
      throw usageError(
        `--annotation ${text}: the index has no image for ${formatPlatform(platform)}`,
        `It has images for ${platforms.join(", ")}.`,
      );
  return entries.map(({ entry, from }) => {
    if (isAttestation(entry) && replaces === "platform") return { entry, from };
    const ofEach = descriptors.filter(({ platform }) => platform === undefined);
    const own = descriptors.filter(
      ({ platform }) => platform !== undefined && formatPlatform(platform) === platformOf(entry),
    );
    const added = textsOf([...ofEach, ...own], "manifest-descriptor");
    if (Object.keys(added).length === 0) return { entry, from };
    return { entry: { ...entry, annotations: { ...entry.annotations, ...added } }, from };
  });
}

/** Returns the path of another repository of the same registry, from which it may take layers itself. */
function mountableFrom(address: string, to: BlobStore): string | undefined {
  const registryOf = (text: string) => text.slice(0, text.indexOf("/", "docker://".length) + 1);
  const registry = registryOf(to.address);
  return address.startsWith(registry) ? address.slice(registry.length) : undefined;
}
