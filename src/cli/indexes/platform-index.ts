/** Indexes that name an image for each platform, in registries. */
import { readPlatform } from "../../builder/bases/remote-base.ts";
import { BoughError } from "../../errors.ts";
import { digestOf, isDigest } from "../../image/digest.ts";
import { type Descriptor, indexTypes, mediaTypes } from "../../image/oci-layout.ts";
import { formatPlatform } from "../../image/platform.ts";
import {
  type BlobSource,
  type BlobStore,
  readDescriptor,
  type StoredManifest,
} from "../../registry/blob-store.ts";
import { asRecord, asText, type JsonRecord, parseRecord } from "../../service/http/json.ts";
import { readAtMost } from "../../streams.ts";

/** An entry of an index, as it is written; fields that bough does not know stay. */
type IndexEntry = Descriptor & {
  platform?: { os: string; architecture: string; variant?: string; "os.version"?: string };
  annotations?: Record<string, string>;
};

/** A manifest's entry, and where it is. */
export interface FoundEntry {
  entry: IndexEntry;
  from: BlobSource;
}

const referenceDigest = "vnd.docker.reference.digest";
const maxConfigBytes = 8 * 1024 * 1024;

/** Reads what a reference names: the entries of an index, or the one of an image, with the platform in its configuration. */
export async function readEntries(
  from: BlobSource,
  reference: string,
  signal: AbortSignal,
): Promise<{ manifest: StoredManifest; entries: FoundEntry[]; annotations: Record<string, string> }> {
  const name = `${from.address}${isDigest(reference) ? "@" : ":"}${reference}`;
  const manifest = await from.getManifest(reference, signal);
  if (manifest === undefined)
    throw new BoughError(`there is no image ${name}`, {
      hint: "Check its name and its tag. `bough push` and `bough build --push` send an image to a registry.",
    });
  const { mediaType, digest, bytes } = manifest;
  const record = parse(bytes, name);
  if (isIndex(mediaType)) {
    const listed = Array.isArray(record.manifests) ? record.manifests : [];
    const entries = listed.map((each) => ({ entry: readEntry(each, name), from }));
    return { manifest, entries, annotations: readAnnotations(record) };
  }
  const described = readEntry(record.config, name);
  const { bytes: config } = await readAtMost(maxConfigBytes, await from.openBlob(described, signal));
  const platform = platformFrom(parse(config, `the configuration of ${name}`));
  if (platform === undefined) throw new BoughError(`${name} does not say which platform it is for`);
  const entry = { mediaType, digest, size: bytes.byteLength, platform };
  return { manifest, entries: [{ entry, from }], annotations: {} };
}

const maxDepth = 4;

/** Reads the same, with the entries of indexes in an index in their place: many programs look only into the first one. */
export async function readImageEntries(
  from: BlobSource,
  reference: string,
  signal: AbortSignal,
  depth = 1,
): Promise<Pick<Awaited<ReturnType<typeof readEntries>>, "entries" | "annotations">> {
  if (depth > maxDepth) throw new BoughError(`${from.address}@${reference}: indexes in indexes in indexes`);
  const { entries, annotations } = await readEntries(from, reference, signal);
  const images: FoundEntry[] = [];
  for (const found of entries) {
    const { mediaType, digest } = found.entry;
    if (!isIndex(mediaType)) images.push(found);
    else images.push(...(await readImageEntries(from, digest, signal, depth + 1)).entries);
  }
  return { entries: images, annotations };
}

function isIndex(mediaType: string): boolean {
  return indexTypes.includes(mediaType);
}

/**
 * Joins entries to those of one index. A later image replaces an earlier one for the same platform, with its attestations; equal
 * entries are one.
 */
export function mergeEntries(found: readonly FoundEntry[]): FoundEntry[] {
  const images = new Map<string, FoundEntry>();
  for (const each of found) if (!isAttestation(each.entry)) images.set(placeOf(each.entry), each);
  const digests = new Set([...images.values()].map(({ entry }) => entry.digest));
  const attestations = new Map<string, FoundEntry>();
  for (const each of found) {
    const subject = each.entry.annotations?.[referenceDigest];
    if (isAttestation(each.entry) && subject !== undefined && digests.has(subject))
      attestations.set(each.entry.digest, each);
  }
  return [...images.values(), ...attestations.values()];
}

/** Returns what an index has one image for: Windows has images for several of its versions, and of what says nothing all are kept. */
function placeOf(entry: IndexEntry): string {
  const platform = platformOf(entry);
  return platform === "unknown" ? entry.digest : `${platform} ${entry.platform?.["os.version"] ?? ""}`;
}

/** Returns the index as it is stored. */
export function encodeIndex(
  entries: readonly FoundEntry[],
  annotations: Readonly<Record<string, string>>,
): Pick<StoredManifest, "mediaType" | "bytes" | "digest"> {
  const bytes = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: mediaTypes.index,
      manifests: entries.map(({ entry }) => entry),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    }),
  );
  return { mediaType: mediaTypes.index, bytes, digest: digestOf(bytes) };
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
  const { config, layers } = parse(manifest.bytes, entry.digest);
  for (const item of [...(Array.isArray(layers) ? layers : []), config]) {
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
  const read = readPlatform(platform);
  return read === undefined ? "unknown" : formatPlatform(read);
}

/** True for the manifest that has an image's provenance and packages. */
export function isAttestation({ annotations }: IndexEntry): boolean {
  return annotations?.[referenceDigest] !== undefined;
}

function readEntry(value: unknown, name: string): IndexEntry {
  const record = asRecord(value);
  const descriptor = readDescriptor(value);
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

function readAnnotations(record: JsonRecord | undefined): Record<string, string> {
  const given = Object.entries(asRecord(record?.annotations) ?? {});
  return Object.fromEntries(given.filter((each): each is [string, string] => typeof each[1] === "string"));
}

function platformFrom(record: JsonRecord | undefined): IndexEntry["platform"] {
  const [os, architecture] = [asText(record?.os), asText(record?.architecture)];
  const [variant, version] = [asText(record?.variant), asText(record?.["os.version"])];
  if (os === undefined || architecture === undefined) return undefined;
  return { os, architecture, ...(variant && { variant }), ...(version && { "os.version": version }) };
}

function parse(bytes: Uint8Array, name: string): JsonRecord {
  const record = parseRecord(bytes);
  if (record === undefined) throw new BoughError(`${name} is not an image's manifest`);
  return record;
}
