/** The data of `docker buildx imagetools inspect --format`: `.Name`, `.Manifest`, `.Image`, `.Provenance` and `.SBOM` of an image. */
import { platformIn } from "../../builder/bases/remote-base.ts";
import { BoughError } from "../../errors.ts";
import { predicateAnnotation } from "../../image/attestation-manifest.ts";
import { manifestTypes, mediaTypes } from "../../image/oci-layout.ts";
import { formatPlatform } from "../../image/platform.ts";
import type { BlobSource } from "../../registry/blob-store.ts";
import { parseDescriptor } from "../../registry/blob-store.ts";
import { asRecord, asText, type JsonRecord, parseRecord } from "../../service/http/json.ts";
import { readAtMost } from "../../streams.ts";
import { GoMap, GoNil, GoStruct, type GoValue } from "../../templates/values.ts";
import {
  type IndexEntry,
  parseManifest,
  type ReadImage,
  readAnnotations,
} from "../indexes/platform-index.ts";
import { image, index, manifest as manifestType, provenance, sbom } from "./oci-types.ts";

interface Attestations {
  provenance: GoValue | undefined;
  sbom: GoValue | undefined;
}

interface FoundImage {
  manifest: JsonRecord;
  digest: string;
}

/**
 * Reads the data of a template. `mentioned`: the names in it, since provenance and SBOM are read only if the template uses them.
 */
export async function inspectImage(
  name: string,
  read: ReadImage,
  mentioned: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<GoValue> {
  const { from } = read;
  const { images, attestations } = await findImages(read, signal);
  const configs: [string, JsonRecord][] = [];
  const attestationsByPlatform: [string, Attestations][] = [];
  const isAttestationWanted = mentioned.has("Provenance") || mentioned.has("SBOM");
  for (const [platform, found] of images) {
    configs.push([platform, await readBlob(from, found.manifest.config, signal)]);
    if (isAttestationWanted)
      attestationsByPlatform.push([
        platform,
        await readAttestations(from, attestations.get(found.digest) ?? [], signal),
      ]);
  }
  const hasSeveralPlatforms = images.size > 1;
  const [config] = configs;
  const of = (part: keyof Attestations, none: GoValue): GoValue => {
    const known = attestationsByPlatform.flatMap(([platform, each]): [string, GoValue][] =>
      each[part] === undefined ? [] : [[platform, each[part]]],
    );
    return hasSeveralPlatforms ? new GoMap(known, none) : (known[0]?.[1] ?? none);
  };
  return new GoStruct(
    `imagetools.tplInput${hasSeveralPlatforms ? "s" : ""}`,
    [
      { name: "Name", key: "name", omitsEmpty: true, value: name },
      { name: "Manifest", key: "manifest", omitsEmpty: true, value: manifestOf(read) },
      {
        ...{ name: "Image", key: "image", omitsEmpty: true },
        value: hasSeveralPlatforms
          ? new GoMap(
              configs.map(([platform, each]) => [platform, image(each)]),
              new GoNil("pointer", "*v1.Image"),
            )
          : image(config?.[1]),
      },
    ],
    {
      methods: {
        Provenance: () => of("provenance", provenance(undefined)),
        SBOM: () => of("sbom", sbom(undefined)),
      },
    },
  );
}

function manifestOf({ manifest, isIndex }: ReadImage): GoValue {
  const { mediaType, digest, bytes } = manifest;
  const described = { mediaType, digest, size: bytes.byteLength };
  if (!isIndex) return manifestType(described);
  const record = parseRecord(bytes) ?? {};
  return index({ ...record, ...described, mediaType: record.mediaType });
}

/** Returns images by platform, including those of nested indexes, and attestation manifests by the digest of their image. */
async function findImages(read: ReadImage, signal: AbortSignal) {
  const images = new Map<string, FoundImage>();
  const attestations = new Map<string, JsonRecord[]>();
  const visit = async (
    manifest: JsonRecord,
    { digest, platform, annotations }: Partial<IndexEntry> & { digest: string },
    depth: number,
  ): Promise<void> => {
    if (Array.isArray(manifest.manifests)) {
      if (depth > 4) throw new BoughError(`${read.from.address}@${digest}: indexes are nested too deeply`);
      for (const each of manifest.manifests) await visitEntry(each, depth + 1);
      return;
    }
    const subject =
      annotations?.["com.docker.reference.digest"] ?? annotations?.["vnd.docker.reference.digest"];
    if (subject !== undefined) {
      attestations.set(subject, [...(attestations.get(subject) ?? []), manifest]);
      return;
    }
    const of = platform ?? (await readBlob(read.from, manifest.config, signal));
    const known = platformIn(asRecord(of));
    images.set(known === undefined ? "unknown" : formatPlatform(known), { manifest, digest });
  };
  const visitEntry = async (value: unknown, depth: number): Promise<void> => {
    const entry = parseDescriptor(value);
    if (entry === undefined) return;
    const isManifest = manifestTypes.includes(entry.mediaType);
    if (!isManifest) return;
    const { digest } = entry;
    const found = await read.from.getManifest(digest, signal);
    if (found === undefined) throw new BoughError(`${read.from.address} has no manifest ${digest}`);
    const record = asRecord(value);
    const platform = asRecord(record?.platform) as IndexEntry["platform"];
    const annotations = readAnnotations(record);
    await visit(
      parseManifest(found.bytes, digest),
      { digest, annotations, ...(platform && { platform }) },
      depth,
    );
  };
  const { manifest } = read;
  await visit(parseManifest(manifest.bytes, manifest.digest), { digest: manifest.digest }, 0);
  return { images, attestations };
}

const maxBytes = 64 * 1024 * 1024;

async function readBlob(from: BlobSource, value: unknown, signal: AbortSignal): Promise<JsonRecord> {
  const described = parseDescriptor(value);
  if (described === undefined) throw new BoughError(`${from.address} has a damaged descriptor`);
  const { bytes, isWhole } = await readAtMost(maxBytes, await from.openBlob(described, signal));
  const record = isWhole ? parseRecord(bytes) : undefined;
  if (record === undefined) throw new BoughError(`${from.address}@${described.digest} is not valid JSON`);
  return record;
}

/** Reads an in-toto statement, which may be signed; `undefined` for a layer of another media type. */
async function readStatement(
  from: BlobSource,
  layer: unknown,
  signal: AbortSignal,
): Promise<JsonRecord | undefined> {
  const mediaType = asText(asRecord(layer)?.mediaType) ?? "";
  if (mediaType === mediaTypes.statement) return readBlob(from, layer, signal);
  if (!/^application\/vnd\.in-toto\..*\+dsse/.test(mediaType)) return undefined;
  const { payload } = await readBlob(from, layer, signal);
  return parseRecord(Buffer.from(asText(payload) ?? "", "base64")) ?? {};
}

async function readAttestations(
  from: BlobSource,
  manifests: readonly JsonRecord[],
  signal: AbortSignal,
): Promise<Attestations> {
  const documents: unknown[] = [];
  let slsa: unknown;
  const layers = manifests.flatMap(({ layers }): unknown[] => (Array.isArray(layers) ? layers : []));
  for (const layer of layers) {
    const record = asRecord(layer);
    const type = readAnnotations(record)[predicateAnnotation] ?? "";
    const isPackages = type === "https://spdx.dev/Document";
    const isProvenance = type.startsWith("https://slsa.dev/provenance/") && slsa === undefined;
    const statement = isPackages || isProvenance ? await readStatement(from, layer, signal) : undefined;
    if (statement === undefined) continue;
    const predicate = statement.predicate ?? null;
    if (isPackages) documents.push(predicate);
    else slsa = predicate;
  }
  const [first, ...others] = documents;
  return {
    provenance: slsa === undefined ? undefined : provenance({ SLSA: slsa }),
    sbom:
      first === undefined
        ? undefined
        : sbom({ SPDX: first, ...(others.length > 0 && { AdditionalSPDXs: others }) }),
  };
}
