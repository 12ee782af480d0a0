/** Indexes that name an image for each platform, in registries. */
import { platformIn } from "../../builder/bases/remote-base.ts";
import { BoughError } from "../../errors.ts";
import { goJson } from "../../go/json.ts";
import { digestOf, isDigest } from "../../image/digest.ts";
import { type Descriptor, dockerMediaTypes, indexTypes, mediaTypes } from "../../image/oci-layout.ts";
import { formatPlatform } from "../../image/platform.ts";
import {
  type BlobSource,
  type BlobStore,
  parseDescriptor,
  type StoredManifest,
} from "../../registry/blob-store.ts";
import { readImageConfig } from "../../registry/image-config.ts";
import { asRecord, asText, type JsonRecord, parseRecord } from "../../service/http/json.ts";

/** An entry of an index, as it is written; fields that bough does not know stay. */
export type IndexEntry = Descriptor & {
  platform?: {
    os: string;
    architecture: string;
    variant?: string;
    "os.version"?: string;
    "os.features"?: unknown;
  };
  annotations?: Record<string, string>;
};

/** A manifest's entry, and where it is. */
export interface FoundEntry {
  entry: IndexEntry;
  from: BlobSource;
}

const referenceDigest = "vnd.docker.reference.digest";

/** A registry has no image of that name. */
export class MissingImageError extends BoughError {
  override readonly name = "MissingImageError";

  /** `docker://HOST/NAME:TAG` */
  readonly address: string;

  constructor(address: string) {
    super(`there is no image ${address}`, {
      hint: "Check its name and its tag. `bough push` and `bough build --push` send an image to a registry.",
    });
    this.address = address;
  }
}

/** What a reference names. */
export interface ReadImage {
  manifest: StoredManifest;
  from: BlobSource;
  isIndex: boolean;
  /** Those of an index, or the one of an image. */
  entries: FoundEntry[];
  /** Of an index. */
  annotations: Record<string, string>;
}

/** Reads the entries of an index, or the one of an image, with the platform in its configuration. */
export async function readEntries(
  from: BlobSource,
  reference: string,
  signal: AbortSignal,
): Promise<ReadImage> {
  const name = `${from.address}${isDigest(reference) ? "@" : ":"}${reference}`;
  const manifest = await from.getManifest(reference, signal);
  if (manifest === undefined) throw new MissingImageError(name);
  const { mediaType, digest, bytes } = manifest;
  const record = parseManifest(bytes, name);
  if (isIndexType(mediaType)) {
    const listed = Array.isArray(record.manifests) ? record.manifests : [];
    const entries = listed.map((each) => ({ entry: readEntry(each, name), from }));
    return { manifest, from, isIndex: true, entries, annotations: readAnnotations(record) };
  }
  const config = await readImageConfig(manifest, from, signal);
  if (config === undefined) throw new BoughError(`${name} has no configuration`);
  const platform = platformOfConfig(parseManifest(config.bytes, `the configuration of ${name}`));
  if (platform === undefined) throw new BoughError(`${name} does not say which platform it is for`);
  const entry = { mediaType, digest, size: bytes.byteLength, platform };
  return { manifest, from, isIndex: false, entries: [{ entry, from }], annotations: {} };
}

const maxDepth = 4;

/** Returns the entries of an index, with those of indexes in it in their place: many programs look only into the first one. */
export async function readImageEntries(
  { entries }: Pick<ReadImage, "entries">,
  signal: AbortSignal,
  depth = 1,
): Promise<FoundEntry[]> {
  const images: FoundEntry[] = [];
  for (const found of entries) {
    const { entry, from } = found;
    if (!isIndexType(entry.mediaType)) images.push(found);
    else if (depth === maxDepth)
      throw new BoughError(`${from.address}@${entry.digest}: indexes in indexes in indexes`);
    else
      images.push(
        ...(await readImageEntries(await readEntries(from, entry.digest, signal), signal, depth + 1)),
      );
  }
  return images;
}

export function isIndexType(mediaType: string): boolean {
  return indexTypes.includes(mediaType);
}

/**
 * Joins entries to those of one index. A later image replaces an earlier one for the same platform, with its attestations; equal
 * entries are one.
 */
export function mergeByPlatform(found: readonly FoundEntry[]): FoundEntry[] {
  const images = new Map<string, FoundEntry>();
  for (const each of found) if (!isAttestation(each.entry)) images.set(placeOf(each.entry), each);
  const digests = new Set([...images.values()].map(({ entry }) => entry.digest));
  const attestations = new Map<string, FoundEntry>();
  for (const each of found) {
    const subject = subjectOf(each.entry);
    if (subject !== undefined && digests.has(subject)) attestations.set(each.entry.digest, each);
  }
  return [...images.values(), ...attestations.values()];
}

/** Returns what an index has one image for: Windows has images for several of its versions, and of what says nothing all are kept. */
function placeOf(entry: IndexEntry): string {
  const platform = platformOf(entry);
  return platform === "unknown" ? entry.digest : `${platform} ${entry.platform?.["os.version"] ?? ""}`;
}

/** Joins entries as docker buildx does: those with one digest are one, with the annotations of all. */
export function mergeByDigest(found: readonly FoundEntry[]): FoundEntry[] {
  const merged = new Map<string, FoundEntry>();
  for (const each of found) {
    const { entry, from } = each;
    const before = merged.get(entry.digest)?.entry;
    merged.set(
      entry.digest,
      before === undefined
        ? each
        : {
            from,
            entry: {
              ...before,
              ...(entry.platform && { platform: entry.platform }),
              annotations: { ...before.annotations, ...entry.annotations },
            },
          },
    );
  }
  return [...merged.values()];
}

/**
 * Returns an index as docker buildx writes it, with the fields of `record` but for its manifests. One of Docker's manifests is
 * Docker's manifest list, which has no annotations.
 */
export function encodeIndex(
  entries: readonly FoundEntry[],
  record: JsonRecord,
): Pick<StoredManifest, "mediaType" | "bytes" | "digest"> {
  const annotations = readAnnotations(record);
  const isDockers =
    Object.keys(annotations).length === 0 &&
    entries.every(
      ({ entry }) => entry.mediaType.startsWith("application/vnd.docker.") && !hasAnnotations(entry),
    );
  const mediaType = asText(record.mediaType) ?? (isDockers ? dockerMediaTypes.index : mediaTypes.index);
  const { schemaVersion: _, mediaType: __, manifests: ___, annotations: ____, ...others } = record;
  const bytes = Buffer.from(
    goJson(
      {
        schemaVersion: 2,
        mediaType,
        ...others,
        manifests: entries.map(({ entry }) => orderedEntry(entry)),
        ...(Object.keys(annotations).length > 0 && { annotations: sorted(annotations) }),
      },
      2,
    ),
  );
  return { mediaType, bytes, digest: digestOf(bytes) };
}

function hasAnnotations({ annotations = {} }: IndexEntry): boolean {
  return Object.keys(annotations).length > 0;
}

/** Returns an entry with its fields in the order that docker buildx has, and those that it does not know behind them. */
function orderedEntry(entry: IndexEntry): JsonRecord {
  const { mediaType, digest, size, urls, annotations, data, platform, artifactType, ...others } =
    entry as IndexEntry & JsonRecord;
  const { architecture, os, variant, ...versions } = (platform ?? {}) as JsonRecord;
  return {
    ...{ mediaType, digest, size, urls },
    ...(hasAnnotations(entry) && { annotations: sorted(annotations ?? {}) }),
    ...{ data, platform: platform && { architecture, os, ...versions, variant }, artifactType },
    ...others,
  };
}

function sorted(texts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Copies an entry's manifest, and all that it names, to another repository. What that has is not sent again. */
export async function copyEntry(
  { entry, from }: FoundEntry,
  to: BlobStore,
  mountsFrom: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (from.address === to.address) return;
  const manifest = await from.getManifest(entry.digest, signal);
  if (manifest === undefined) throw new BoughError(`${from.address} has no manifest ${entry.digest}`);
  const { config, layers, manifests } = parseManifest(manifest.bytes, entry.digest);
  for (const inner of Array.isArray(manifests) ? manifests : [])
    await copyEntry({ entry: readEntry(inner, entry.digest), from }, to, mountsFrom, signal);
  for (const item of [...(Array.isArray(layers) ? layers : []), ...(config === undefined ? [] : [config])]) {
    const blob = readEntry(item, entry.digest);
    if (await to.hasBlob(blob, signal)) continue;
    if (mountsFrom !== undefined && (await to.mountBlob(blob, mountsFrom, signal))) continue;
    const open = async function* () {
      yield* await from.openBlob(blob, signal);
    };
    await to.putBlob(blob, open, signal);
  }
  await to.putManifest(entry.digest, manifest, signal);
}

/** Returns `linux/arm64`, or `unknown`. */
export function platformOf({ platform }: IndexEntry): string {
  const read = platformIn(platform);
  return read === undefined ? "unknown" : formatPlatform(read);
}

/** True for the manifest that has an image's provenance and packages. */
export function isAttestation(entry: IndexEntry): boolean {
  return subjectOf(entry) !== undefined;
}

/** Returns the digest of the image that an attestation is about. */
export function subjectOf({ annotations }: IndexEntry): string | undefined {
  return annotations?.[referenceDigest];
}

function readEntry(value: unknown, name: string): IndexEntry {
  const record = asRecord(value);
  const descriptor = parseDescriptor(value);
  if (descriptor === undefined) throw new BoughError(`${name} has a damaged descriptor`);
  const { platform: given, annotations: _, ...others } = record ?? {};
  const platform = platformFrom(asRecord(given));
  const annotations = readAnnotations(record);
  return {
    ...others,
    ...descriptor,
    ...(platform && { platform: { ...asRecord(given), ...platform } }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}

export function readAnnotations(record: JsonRecord | undefined): Record<string, string> {
  const given = Object.entries(asRecord(record?.annotations) ?? {});
  return Object.fromEntries(given.filter((each): each is [string, string] => typeof each[1] === "string"));
}

/** Returns the platform as an entry has it: an architecture's usual variant is left out. */
function platformOfConfig(config: JsonRecord): IndexEntry["platform"] {
  const [platform, read] = [platformFrom(config), platformIn(config)];
  if (platform === undefined || read === undefined) return platform;
  const { variant: _, ...others } = platform;
  const { os, architecture, variant } = read;
  return { ...others, os, architecture, ...(variant !== "" && { variant }) };
}

export function platformFrom(record: JsonRecord | undefined): IndexEntry["platform"] {
  const [os, architecture] = [asText(record?.os), asText(record?.architecture)];
  const [variant, version] = [asText(record?.variant), asText(record?.["os.version"])];
  if (os === undefined || architecture === undefined) return undefined;
  return { os, architecture, ...(variant && { variant }), ...(version && { "os.version": version }) };
}

export function parseManifest(bytes: Uint8Array, name: string): JsonRecord {
  const record = parseRecord(bytes);
  if (record === undefined) throw new BoughError(`${name} is not an image's manifest`);
  return record;
}
