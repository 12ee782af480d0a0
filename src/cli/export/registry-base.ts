import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { formatPlatform, type Platform } from "../../builder/bases/platform.ts";
import { isLoopback, registryHost } from "../../engine/import/image-source.ts";
import { BoughError } from "../../errors.ts";
import { decompress } from "../../image/compression.ts";
import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { blobPath } from "../../image/digest.ts";
import { type HistoryLine, parseOrigin } from "../../image/history.ts";
import type { LayerBlob } from "../../image/layer-blob.ts";
import { applyLayer, type TreeIndex } from "../../image/tree-index.ts";
import type { Runtime } from "../process/runtime.ts";
import { copyImage } from "./skopeo.ts";

/** A base image, as a registry has it. */
export interface BaseFacts {
  /** The lowest first. */
  layers: readonly LayerBlob[];
  config: ImageConfig;
  history: readonly HistoryLine[];
}

export interface RegistryBase extends BaseFacts {
  open(layer: LayerBlob): AsyncIterable<Uint8Array>;
}

/** Has skopeo fetch an image of a registry to a directory, which is made if needed. */
export async function fetchBase(
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
  const takesPlain = isLoopback(registryHost(url.slice("docker://".length)));
  const options = [
    ...[`--override-os=${os}`, `--override-arch=${architecture}`],
    ...(variant === "" ? [] : [`--override-variant=${variant}`]),
    ...["copy", "--remove-signatures", "--dest-oci-accept-uncompressed-layers", "--retry-times", "2"],
    ...(takesPlain ? ["--src-tls-verify=false"] : []),
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
  const history = parseOrigin(config).history ?? [];
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
export async function indexBase({ layers, open }: Pick<RegistryBase, "layers" | "open">): Promise<TreeIndex> {
  const tree: TreeIndex = new Map();
  for (const layer of layers) {
    const [, suffix] = /\+(gzip|zstd)$/.exec(layer.mediaType) ?? [];
    const compression = suffix === "gzip" || suffix === "zstd" ? suffix : "none";
    await applyLayer(tree, decompress(open(layer), compression, layer.digest), layer.digest);
  }
  return tree;
}
