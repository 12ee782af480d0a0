import { recordedBase, rememberImage } from "../../builder/cache/image-records.ts";
import { BoughError } from "../../errors.ts";
import type { Compression } from "../../image/compression.ts";
import { type ImageToWrite, joinImages, type WrittenImage } from "../../image/image-writer.ts";
import type { LayerContent } from "../../image/layer-writer.ts";
import type { Platform } from "../../image/platform.ts";
import type { TreeToWrite } from "../../image/tree-tar.ts";
import type { RegistryCredentials } from "../../registry/credentials.ts";
import { NoInspectError } from "../../service/images/inspect-routes.ts";
import { tap } from "../../streams.ts";
import { startImportProgress } from "../../terminal/import-progress.ts";
import { formatBytes, formatCount, formatPart } from "../../terminal/quantity.ts";
import type { Surroundings } from "../command-line/command.ts";
import { watchedTerminal } from "../process/runtime.ts";
import type { Connection } from "../service/connection.ts";
import type { SignImage } from "../signing/open-signer.ts";
import { needIndex } from "./annotations.ts";
import type { Daemon } from "./daemon.ts";
import { type Destination, nameDestination } from "./destination.ts";
import { exportImage } from "./export-image.ts";
import { type ExportedImage, openImageContent, type TimeOptions } from "./image-source.ts";
import type { ImageOverBase } from "./over-base.ts";
import { type PushedImage, pushImage } from "./push.ts";

interface Delivery {
  /** An image for each platform. */
  images: readonly [DeliveredImage, ...DeliveredImage[]];
  destination: Destination;
  compression: Compression;
  times: TimeOptions;
  /** The time of all files in a plain archive, in place of their own. */
  fileTime?: number | undefined;
  isInsecure: boolean;
  /** Set for the destination `daemon`. */
  daemon?: Daemon | undefined;
  recompresses?: boolean;
  hasDockersTypes?: boolean;
  credentials?: RegistryCredentials | undefined;
  topAnnotations?: ImageToWrite["topAnnotations"];
  /** Signs what is pushed. */
  sign?: SignImage | undefined;
}

interface DeliveredImage extends ExportedImage, Pick<ImageToWrite, "attest" | "annotations"> {
  /** The service that has it. */
  from: Pick<Connection, "service" | "store">;
  /** The directory of a plain archive that its files go into; `undefined`: the archive's root. */
  directory?: string | undefined;
}

type DeliveredAs = WrittenImage & Partial<Pick<PushedImage, "sentBytes" | "signature">>;

/** Exports or pushes an image, or those for several platforms, and shows the progress. */
export async function deliverImage(
  {
    images,
    destination,
    compression,
    times,
    fileTime,
    isInsecure,
    daemon,
    recompresses = false,
    hasDockersTypes = false,
    credentials,
    topAnnotations,
    sign,
  }: Delivery,
  { runtime, globals, log }: Pick<Surroundings, "runtime" | "globals" | "log">,
): Promise<DeliveredAs | undefined> {
  const { doing, done } = verbsOf(destination);
  const progress = startImportProgress({
    url: nameDestination(destination),
    doing,
    clock: runtime.clock,
    log,
    terminal: watchedTerminal(runtime, globals),
  });
  let reused = 0;
  let unverified: string | undefined;
  const [image] = images;
  const { service, store } = image.from;
  const bases: ImageOverBase[] = [];
  const open = async (each: DeliveredImage): Promise<ImageToWrite> => {
    const openBase = async (platform: Platform) => {
      const { openOverBase } = await import("./over-base.ts");
      const onProgress = progress.message;
      const base = await openOverBase(each.uuid, { ...each.from, platform, runtime, log, onProgress });
      if (base !== undefined) bases.push(base);
      return base;
    };
    const content = await openImageContent(each.from.service, each, times, openBase);
    const opened = withBaseSource(content, recordedBase(each.uuid, each.from.store));
    warnOfDepth(opened.layers.length, log);
    const { attest, annotations } = each;
    const hasIndex = needIndex(annotations, destination.kind);
    return { ...opened, attest, annotations, hasIndex, recompresses, hasDockersTypes };
  };
  const content = async () => {
    const [, ...others] = images;
    const all = [await open(image), ...(await Promise.all(others.map(open)))] as const;
    const opened = joinImages(all, { isIndex: image.directory !== undefined && hasIndex(destination) });
    return counted({ ...opened, topAnnotations }, progress.message);
  };
  const onReused = (layers: number) => {
    reused = layers;
  };
  async function write(): Promise<DeliveredAs | undefined> {
    const shared = {
      compression,
      runtime,
      imageMetadata: store.imageMetadata,
      onProgress: progress.message,
      onReused,
    };
    switch (destination.kind) {
      case "registry":
        return pushImage(destination, {
          ...shared,
          content: await content(),
          isInsecure,
          credentials,
          sign,
          onUnverified: (reason) => {
            unverified = reason;
          },
        });
      case "daemon": {
        if (daemon === undefined) throw new Error("the daemon is found before the build");
        const { loadImage } = await import("./load-image.ts");
        return loadImage(daemon, { ...shared, content: await content(), names: destination.names });
      }
      default:
        return exportImage(destination, {
          content,
          tree: () => service.openArchive(image.uuid, "/"),
          trees: images.map(treeOf),
          fileTime,
          compression,
          runtime,
        });
    }
  }
  try {
    const written = await write();
    progress.end(done);
    // Scripts written for docker go on with an id such as --iidfile has it.
    for (const digest of written === undefined ? [] : [written.configDigest, written.descriptor.digest])
      if (images.length === 1) rememberImage(digest, image.uuid, store);
    if (reused > 0)
      log.info(
        `already ${destination.kind === "registry" ? "in the registry" : "with docker"}: ${reused} of ${formatCount(written?.layers.length ?? 0, "layer")}`,
      );
    if (unverified !== undefined)
      log.warn(`the registry has accepted the image, but does not return it: ${unverified}`);
    return written;
  } catch (error) {
    progress.end("failed");
    if (!(error instanceof NoInspectError)) throw error;
    throw new BoughError(error.wording, {
      hint: "Images of the embedded engine can be exported and pushed: build it there, with `bough --local build`.",
      cause: error,
    });
  } finally {
    for (const base of bases) base.close();
  }
}

/** True for a destination that may have an index for one platform, too. */
function hasIndex({ kind }: Destination): boolean {
  return kind === "registry" || kind === "oci" || kind === "oci-archive";
}

/** Opens the archive when its turn has come. */
function treeOf({ uuid, from: { service }, directory }: DeliveredImage): TreeToWrite {
  async function* open() {
    yield* await service.openArchive(uuid, "/");
  }
  return { tree: open(), prefix: directory === undefined ? "" : `${directory}/` };
}

function verbsOf({ kind }: Destination): { doing: string; done: "pushed" | "loaded" | "exported" } {
  if (kind === "registry") return { doing: "pushing", done: "pushed" };
  return kind === "daemon" ? { doing: "loading", done: "loaded" } : { doing: "exporting", done: "exported" };
}

/** A base's layers may still be in the repository that the base came from: a push to the same registry need not send them. */
function withBaseSource(content: ImageToWrite, base: string | undefined): ImageToWrite {
  const repository = base?.replace(/(@[^@]*)?$/, "").replace(/:[^:/]*$/, "");
  if (repository === undefined) return content;
  const layers = content.layers.map((layer) =>
    layer.stored === undefined ? layer : { ...layer, sources: [...(layer.sources ?? []), repository] },
  );
  return { ...content, layers };
}

/** dockerd's `maxLayerDepth`: it answers a larger image with "max depth exceeded". */
const maxDockerLayers = 125;

function warnOfDepth(layers: number, log: Pick<Surroundings["log"], "warn">): void {
  if (layers <= maxDockerLayers) return;
  log.warn(
    `the image has ${layers} layers, and Docker loads none with more than ${maxDockerLayers}: join RUNs, or copy the result into a stage of its own (COPY --from=STAGE / /)`,
  );
}

/** The number of bytes between two messages about a layer's progress. */
const reportedBytes = 8_000_000;

function counted(content: ImageToWrite, report: (message: string) => void): ImageToWrite {
  const { length } = content.layers;
  const layers = content.layers.map((layer, index): LayerContent => {
    const onRead = (bytes: number) =>
      report(`layer ${index + 1}/${length}, ${formatRead(bytes, layer.size)}`);
    return {
      ...layer,
      pack: layer.pack && ((job) => layer.pack?.({ ...job, onRead }) ?? Promise.resolve(undefined)),
      open: async () => count(await layer.open(), onRead),
    };
  });
  return { ...content, layers };
}

function formatRead(bytes: number, size: number | undefined): string {
  return size === undefined ? formatBytes(bytes) : formatPart(bytes, size);
}

function count(
  chunks: AsyncIterable<Uint8Array>,
  report: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  let [bytes, next] = [0, 0];
  return tap(chunks, (chunk) => {
    bytes += chunk.byteLength;
    if (bytes < next) return;
    report(bytes);
    next = bytes + reportedBytes;
  });
}
