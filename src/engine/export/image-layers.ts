import { messageOf } from "../../errors.ts";
import { hexOf } from "../../image/digest.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import type { ImageLayer } from "../../service/wire/image.ts";
import { streamOf } from "../../streams.ts";
import { RequestError } from "../http/responses.ts";
import { contentDigestOf } from "../import/image-config.ts";
import { absentBlobs, blobSources, recordForged } from "../records/absent-layers.ts";
import { findImage, requireImage } from "../records/images.ts";
import { findBlobs } from "../records/imported-blobs.ts";
import { layerSize } from "../records/layer-sizes.ts";
import { contentsDownFrom, layerDirectory } from "../records/layers.ts";
import type { EngineState } from "../state.ts";
import type { LayerArchiveOptions } from "./layer-archive.ts";
import type { PackableLayer } from "./pack-layer.ts";

/** Returns an image's layers, the lowest first; with `measures`, also the sizes of those that are not imported. */
export function listLayers(state: EngineState, image: string, measures: boolean): ImageLayer[] {
  return layersOf(state, image).map(({ place: _, number, ...layer }) =>
    measures && !layer.is_imported ? { ...layer, size: layerSize(state, number) } : layer,
  );
}

/** A layer's archive: its blob, or else its files, uncompressed. */
interface OpenableLayer {
  mediaType: string;
  open(): Promise<ReadableStream<Uint8Array>>;
}

/** Finds a layer to open. `clampTo` is the latest time, in seconds since the epoch, in an archive that is made here. */
export function findOpenableLayer(
  state: EngineState,
  image: string,
  layer: string,
  clampTo: number | undefined,
): OpenableLayer {
  const found = findPlaced(state, image, layer);
  if (found === undefined) throw new RequestError(404, `image ${image} has no layer ${layer}`);
  const { inUserNamespace, closing: signal } = state;
  return {
    mediaType: found.blob?.media_type ?? "application/x-tar",
    async open() {
      if (found.is_remote === true) return streamRemote(state, found);
      if ("blob" in found.place) return Bun.file(found.place.blob).stream();
      return streamArchive(found.place, { inUserNamespace, clampTo, signal });
    },
  };
}

/** Returns a layer whose archive has to be made; `undefined` if the blob is stored, and if there is no such layer. */
export function findPackable(state: EngineState, image: string, layer: string): PackableLayer | undefined {
  if (findImage(state, image) === undefined) return undefined;
  const found = findPlaced(state, image, layer);
  return found === undefined || found.is_remote === true || "blob" in found.place ? undefined : found.place;
}

async function streamArchive(
  { directory, split }: PackableLayer,
  options: LayerArchiveOptions & { signal: AbortSignal },
): Promise<ReadableStream<Uint8Array>> {
  const [{ streamLayer }, { streamSplit }] = await Promise.all([
    import("./layer-archive.ts"),
    import("../records/tar-split.ts"),
  ]);
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, options.signal]);
  const chunks =
    split === undefined
      ? streamLayer(directory, { ...options, signal })
      : streamSplit(split.path, directory, signal);
  return streamOf(chunks, () => ended.abort());
}

/** Passes on the blob of an absent layer from the first source that has it. */
async function streamRemote(
  state: EngineState,
  { number, source: first = "", blob }: PlacedLayer,
): Promise<ReadableStream<Uint8Array>> {
  const { openGuardedSource } = await import("../import/fetch-blobs.ts");
  const { checkContent, ForgedBlobError } = await import("../unpack/checked-blob.ts");
  const { digest = "", size = 0, diff_id: diffId = "" } = blob ?? {};
  const others = blobSources(state.database, number)
    .flat()
    .flatMap((other) => (other.digest === digest && other.source !== first ? [other.source] : []));
  let failure: RequestError | undefined;
  for (const source of [first, ...others]) {
    const opened = await openGuardedSource(state, source);
    const ended = new AbortController();
    const signal = AbortSignal.any([ended.signal, state.closing]);
    const fail = (error: unknown) => {
      const reason = messageOf(opened.reasonOf(messageOf(error)) ?? error);
      const text = `layer ${digest} cannot be fetched from ${source}: ${reason}`;
      // The next list of the layers names another source.
      if (!signal.aborted) state.unreachable.recordBlob({ source, digest }, text);
      if (error instanceof ForgedBlobError) recordForged(state.database, { digest, diffId });
      return new RequestError(424, text);
    };
    try {
      const chunks = await opened.store.openBlob({ digest, size }, signal);
      const layer = { diffId, name: `layer ${digest} of ${source}`, maxBytes: state.importLimits.bytes };
      return streamOf(rethrowing(checkContent(chunks, layer), fail), () => {
        ended.abort();
        opened[Symbol.dispose]();
      });
    } catch (error) {
      opened[Symbol.dispose]();
      failure ??= fail(error);
    }
  }
  throw failure ?? new RequestError(424, `layer ${digest} cannot be fetched`);
}

async function* rethrowing(
  chunks: AsyncIterable<Uint8Array>,
  as: (error: unknown) => Error,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    throw as(error);
  }
}

/** A layer, with the path of its imported blob, or the files of which its archive is made. An absent layer has neither. */
type PlacedLayer = ImageLayer & { number: number; place: { blob: string } | PackableLayer };

/** A layer by its number, which `layerDirectory` takes. */
type IdentifiedLayer = Pick<ImageLayer, "id" | "created_at" | "is_imported"> & { number: number };

/** Returns an image's layers, the lowest first. Leaves out the empty layer that `FROM scratch` starts from. */
export function unpackedLayers(state: EngineState, reference: string): IdentifiedLayer[] {
  const emptyContent = contentDigestOf([]);
  const chain = contentsDownFrom(state.database, requireImage(state, reference).layer).reverse();
  return chain.flatMap(({ id: number, created_at, content }): IdentifiedLayer[] => {
    if (content === emptyContent) return [];
    // The ID contains the time, so that it differs from that of an earlier layer with the same number.
    const id = `${number}-${created_at}`;
    const createdAt = new Date(created_at).toISOString();
    return [{ number, id, created_at: createdAt, is_imported: content !== null }];
  });
}

/** Throws a RequestError (404) if the image has no such layer. */
export function indexOfLayer(layers: readonly IdentifiedLayer[], image: string, layer: string): number {
  const index = layers.findIndex(({ id }) => id === layer);
  if (index < 0) throw new RequestError(404, `image ${image} has no layer ${layer}`);
  return index;
}

/** Returns an image's layers as they are exported: imported ones as their original blobs, if these were kept. */
function layersOf(state: EngineState, reference: string): PlacedLayer[] {
  return unpackedLayers(state, reference).flatMap((layer) => placedLayers(state, layer));
}

/** Finds one layer as it is exported. An export asks for each layer, so the others are read only if the ID is a blob's. */
function findPlaced(state: EngineState, image: string, layer: string): PlacedLayer | undefined {
  const layers = unpackedLayers(state, image);
  const named = layers.filter(({ id }) => id === layer);
  return (named.length > 0 ? named : layers)
    .flatMap((each) => placedLayers(state, each))
    .find(({ id }) => id === layer);
}

function placedLayers(state: EngineState, layer: IdentifiedLayer): PlacedLayer[] {
  const { layout } = state;
  const { number } = layer;
  const absent = absentBlobs(state, number);
  if (absent.length > 0)
    return absent.map(({ source, ...blob }) => ({
      ...layer,
      ...{ id: hexOf(blob.digest), is_remote: true, source, blob: describeBlob(blob), place: { blob: "" } },
    }));
  const blobs = layer.is_imported ? findBlobs(layout, number) : undefined;
  const directory = layerDirectory(layout, number);
  return (
    blobs?.map(({ path, source, splitBytes, ...blob }) => ({
      ...layer,
      ...(source === undefined ? {} : { source }),
      id: hexOf(blob.digest),
      blob: describeBlob(blob),
      place:
        splitBytes === undefined ? { blob: path } : { directory, split: { path, archiveBytes: blob.size } },
    })) ?? [{ ...layer, place: { directory } }]
  );
}

function describeBlob({ mediaType, digest, size, diffId }: LayerBlob): NonNullable<ImageLayer["blob"]> {
  return { media_type: mediaType, digest, size, diff_id: diffId };
}
