import { mkdirSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { recordedBase } from "../../builder/cache/image-records.ts";
import { sourceWords } from "../../engine/import/registry-settings.ts";
import { findPolicy } from "../../engine/import/signature-policy.ts";
import { lastErrorMessage } from "../../engine/import/tool.ts";
import { findProgram, helperEnvironment } from "../../engine/system/programs.ts";
import { BoughError, messageOf } from "../../errors.ts";
import { decompress } from "../../image/compression.ts";
import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { blobPath } from "../../image/digest.ts";
import { type HistoryLine, parseImageOrigin } from "../../image/history.ts";
import { applyLayer, layerDifference, type TreeIndex } from "../../image/layer-difference.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import type { LayerContent } from "../../image/layer-writer.ts";
import { formatPlatform, type Platform } from "../../image/platform.ts";
import { isInUserNamespace } from "../../own-path.ts";
import { endHelper, startHelper } from "../../programs/helper.ts";
import type { Service } from "../../service/client.ts";
import type { ImageMetadataCache } from "../../store/image-metadata.ts";
import { readLines } from "../../streams.ts";
import type { Log } from "../../terminal/log.ts";
import type { Runtime } from "../process/runtime.ts";
import { openScratch } from "../process/scratch.ts";

interface BaseOptions {
  service: Pick<Service, "openArchive">;
  store: { imageMetadata: ImageMetadataCache };
  platform: Platform;
  runtime: Runtime;
  log: Log;
  onProgress: (message: string) => void;
}

export interface ImageOverBase {
  base: BaseFacts;
  /** The base's layers, the lowest first, and the image's own. Nothing is fetched before one is opened. */
  layers: readonly LayerContent[];
  /** Removes the fetched files. */
  close(): void;
}

/**
 * Opens an image of a service that keeps no layers. Its layers are those of its base, and one of its own: the difference of its
 * files from the base's, which is right even if the base has changed in its registry. Returns `undefined` if there is no known
 * base, or it can't be fetched.
 */
export async function openOverBase(image: string, options: BaseOptions): Promise<ImageOverBase | undefined> {
  const { store, log, runtime } = options;
  const url = recordedBase(image, store);
  if (url === undefined) return undefined;
  const scratch = openScratch("base", runtime.environment);
  const directory = scratch.path;
  const close = () => scratch[Symbol.dispose]();
  let fetched: Promise<RegistryBase> | undefined;
  const fetchOnce = () => {
    if (fetched !== undefined) return fetched;
    options.onProgress(`fetching the layers of ${url}`);
    fetched = fetchBase(url, directory, options);
    return fetched;
  };
  try {
    // The base's layers are remembered: the same image must have the same ones, and a push may not need to fetch them.
    const known = store.imageMetadata.get(image, question);
    const facts = known === undefined ? factsOf(await fetchOnce()) : (JSON.parse(known) as BaseFacts);
    if (known === undefined) store.imageMetadata.set(image, question, JSON.stringify(facts));
    const blobs = facts.layers;
    const base = blobs.map(
      (blob): LayerContent => ({
        id: blob.digest,
        stored: blob,
        open: async () => (await fetchOnce()).open(blob),
      }),
    );
    const own: LayerContent = {
      id: [image, "over", ...blobs.map(({ digest }) => digest)].join(" "),
      async open() {
        const tree = await indexBase({ layers: blobs, open: (await fetchOnce()).open });
        const archive = join(directory, "archive");
        await spool(await options.service.openArchive(image, "/"), archive, runtime.signal);
        return layerDifference(tree, archive);
      },
    };
    return { base: facts, layers: [...base, own], close };
  } catch (error) {
    close();
    runtime.signal.throwIfAborted();
    log.warn(
      `the image is exported as one layer, because the layers of its base cannot be fetched: ${messageOf(error)}`,
    );
    return undefined;
  }
}

const question = "base in the registry";

function factsOf({ layers, config, history }: RegistryBase): BaseFacts {
  return { layers, config, history };
}

async function spool(chunks: ReadableStream<Uint8Array>, path: string, signal: AbortSignal): Promise<void> {
  await using file = await open(path, "w", 0o600);
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    await file.writeFile(chunk);
  }
}

/** A base image, as a registry has it. */
interface BaseFacts {
  /** The lowest first. */
  layers: readonly LayerBlob[];
  config: ImageConfig;
  history: readonly HistoryLine[];
}

interface RegistryBase extends BaseFacts {
  open(layer: LayerBlob): AsyncIterable<Uint8Array>;
}

/** Has skopeo fetch an image of a registry to a directory, which is made if needed. */
async function fetchBase(
  url: string,
  directory: string,
  {
    platform,
    onProgress,
    runtime,
  }: { platform: Platform; onProgress: (line: string) => void; runtime: Runtime },
): Promise<RegistryBase> {
  const { os, architecture, variant } = platform;
  mkdirSync(directory, { mode: 0o700, recursive: true });
  const words = sourceWords(url, directory, runtime.environment);
  const options = [
    ...words.global,
    ...[`--override-os=${os}`, `--override-arch=${architecture}`],
    ...(variant === "" ? [] : [`--override-variant=${variant}`]),
    ...["copy", "--remove-signatures", "--dest-oci-accept-uncompressed-layers", ...words.copy],
  ];
  const layout = join(directory, "base");
  await copyImage(options, [url, `oci:${layout}:base`], { directory, onLine: onProgress, runtime });
  const place = (digest: string) => join(layout, blobPath(digest));
  const read = (path: string) => JSON.parse(readFileSync(path, "utf8"));
  const index = read(join(layout, "index.json")) as { manifests: { digest: string }[] };
  const manifest = read(place(index.manifests[0]?.digest ?? "")) as Manifest;
  const config = read(place(manifest.config.digest)) as Config;
  const { diff_ids: diffIds } = config.rootfs;
  const isWanted = config.os === os && config.architecture === architecture;
  if (!isWanted) throw new BoughError(`${url} has no image for ${formatPlatform(platform)}`);
  if (diffIds.length !== manifest.layers.length)
    throw new BoughError(
      `${url} is damaged: its configuration has ${diffIds.length} diff_ids for ${manifest.layers.length} layers`,
    );
  const layers = manifest.layers.map(({ mediaType, digest, size }, number) => {
    return { mediaType, digest, size, diffId: diffIds[number] ?? "" };
  });
  const history = parseImageOrigin(config).history ?? [];
  return {
    layers,
    config: parseImageConfig(config.config ?? {}),
    history,
    open: ({ digest }) => Bun.file(place(digest)).stream(),
  };
}

interface Manifest {
  config: { digest: string };
  layers: { mediaType: string; digest: string; size: number }[];
}

interface Config {
  os: string;
  architecture: string;
  config?: Record<string, unknown>;
  history?: unknown;
  rootfs: { diff_ids: string[] };
}

/** Returns all files of the base. */
async function indexBase({ layers, open }: Pick<RegistryBase, "layers" | "open">): Promise<TreeIndex> {
  const tree: TreeIndex = new Map();
  for (const layer of layers) {
    const [, suffix] = /\+(gzip|zstd)$/.exec(layer.mediaType) ?? [];
    const compression = suffix === "gzip" || suffix === "zstd" ? suffix : "none";
    await applyLayer(tree, decompress(open(layer), compression, layer.digest), layer.digest);
  }
  return tree;
}

interface SkopeoJob {
  /** A directory for skopeo's temporary files. */
  directory: string;
  onStart?: (pid: number) => void;
  runtime: Runtime;
}

/** Has skopeo copy an image. `onLine` is called with each line that skopeo prints. */
async function copyImage(
  options: readonly string[],
  [from, to]: readonly [from: string, to: string],
  { onLine, ...job }: SkopeoJob & { onLine: (line: string) => void },
): Promise<void> {
  await runSkopeo([...options, from, to], job, (output) => relay(output, onLine));
}

/**
 * Runs skopeo, with the credentials that it finds, such as those of `docker login` or `skopeo login`. Returns what `read` makes of
 * its standard output.
 */
async function runSkopeo<Result>(
  words: readonly string[],
  { directory, onStart, runtime }: SkopeoJob,
  read: (output: ReadableStream<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  const { environment, signal } = runtime;
  signal.throwIfAborted();
  const command = [
    findProgram("skopeo", environment),
    ...["--tmpdir", directory],
    ...(findPolicy(environment) === undefined ? ["--insecure-policy"] : []),
    ...words,
  ];
  // Without this, skopeo looks for credentials in root's directory, which in a user namespace belongs to another user.
  const own = isInUserNamespace() ? { XDG_RUNTIME_DIR: directory } : {};
  const skopeo = startHelper(command, { environment: { ...own, ...helperEnvironment(environment) } });
  const kill = () => endHelper(skopeo);
  signal.addEventListener("abort", kill, { once: true });
  try {
    onStart?.(skopeo.pid);
    const [result, said, status] = await Promise.all([
      read(skopeo.stdout),
      new Response(skopeo.stderr).text(),
      skopeo.exited,
    ]);
    signal.throwIfAborted();
    if (status !== 0)
      throw new BoughError(`skopeo: ${lastErrorMessage(said) || `exited with code ${status}`}`);
    return result;
  } finally {
    signal.removeEventListener("abort", kill);
    endHelper(skopeo);
  }
}

async function relay(output: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  for await (const line of readLines(output)) {
    // The progress of layers is reported in bytes, elsewhere.
    if (line.trim() !== "" && !line.startsWith("Copying blob")) onLine(line.trim());
  }
}
