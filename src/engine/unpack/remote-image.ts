import { BoughError } from "../../errors.ts";
import type { ImageConfig } from "../../image/config.ts";
import { digestOf, isDigest } from "../../image/digest.ts";
import type { ImageOrigin } from "../../image/history.ts";
import { layerMediaType } from "../../image/oci-layout.ts";
import { formatPlatform, parsePlatform } from "../../image/platform.ts";
import type { DeclaredImage, RemoteImageRequest } from "../../service/wire/image.ts";
import { refuse, requireStoreAddress, requireTag } from "../http/fields.ts";
import { RequestError, withRequestErrors } from "../http/responses.ts";
import { readImageConfig } from "../import/image-config.ts";
import { requireAcceptedRepository } from "../import/signature-policy.ts";
import { maxLayers } from "../import-limits.ts";
import type { EngineState } from "../state.ts";
import { type DeclaredLayer, declareImage } from "./declare-image.ts";

/** Checks a request, and records its image, whose layers are fetched when they are needed. */
export function declareRemoteImage(state: EngineState, request: RemoteImageRequest): DeclaredImage {
  const { source, tag } = request;
  requireStoreAddress(source, state);
  // A refused client imports the image instead: for an import, skopeo checks signatures.
  if (source.startsWith("docker://"))
    withRequestErrors(() => requireAcceptedRepository(source, state.environment), 403);
  const layers = checkLayers(request, state.importLimits.bytes);
  if (tag !== undefined) requireTag(tag);
  return declareImage(state, { ...describe(request, layers, state), layers, tag });
}

const dockerLayer = "application/vnd.docker.image.rootfs.diff.tar";

/** OCI's media types by those of Docker's manifests and their own. */
const layerTypes = new Map([
  ...(["none", "gzip", "zstd"] as const).map((compression): [string, string] => [
    layerMediaType(compression),
    layerMediaType(compression),
  ]),
  [dockerLayer, layerMediaType("none")],
  [`${dockerLayer}.gzip`, layerMediaType("gzip")],
  [`${dockerLayer}.zstd`, layerMediaType("zstd")],
]);

function checkLayers({ source, layers }: RemoteImageRequest, maxBytes: number): DeclaredLayer[] {
  if (layers.length > maxLayers) return refuse("layers", `must be at most ${maxLayers}`);
  return layers.map((layer, index): DeclaredLayer => {
    const { size, digest, diff_id: diffId, created_at: created } = layer;
    const name = `layers[${index}]`;
    const mediaType = layerTypes.get(layer.media_type);
    if (mediaType === undefined)
      return refuse(`${name}.media_type`, "is not that of a layer that bough can unpack");
    if (size > maxBytes) return refuse(`${name}.size`, `is more than ${maxBytes}`);
    const createdAt = created === undefined ? undefined : Date.parse(created);
    if (Number.isNaN(createdAt)) return refuse(`${name}.created_at`, "is not a time");
    requireDigest(digest, `${name}.digest`);
    requireDigest(diffId, `${name}.diff_id`);
    return { source, mediaType, digest, size, diffId, createdAt, table: layer.table };
  });
}

function requireDigest(text: string, name: string): void {
  if (!isDigest(text)) refuse(name, "is not a digest of SHA-256");
}

interface ImageDescription {
  config: ImageConfig;
  origin: ImageOrigin;
  configDigest: string | undefined;
}

function describe(
  { source, configuration, config, origin: given, platform, config_digest }: RemoteImageRequest,
  layers: readonly DeclaredLayer[],
  { isServer }: Pick<EngineState, "isServer">,
): ImageDescription {
  if (configuration !== undefined) return readConfiguration(configuration, source, layers);
  // Nothing proves that the digest is that of this configuration, and other clients would get this image for it.
  if (config_digest !== undefined && isServer)
    throw new RequestError(403, "config_digest is not allowed on a server: configuration is");
  if (config_digest !== undefined) requireDigest(config_digest, "config_digest");
  const origin = { ...given };
  if (platform !== undefined)
    origin.platform = withRequestErrors(() => formatPlatform(parsePlatform(platform)));
  return { config: config ?? refuse("config", "is missing"), origin, configDigest: config_digest };
}

/** Reads the image's own configuration, which has to name the content of the layers. */
function readConfiguration(text: string, source: string, layers: readonly DeclaredLayer[]): ImageDescription {
  return withRequestErrors(() => {
    const bytes = new TextEncoder().encode(text);
    const digest = digestOf(bytes);
    const image = readImageConfig({ config: { bytes, digest }, layers }, source);
    if (layers.some(({ diffId }, index) => diffId !== image.diffIds[index]))
      throw new BoughError("the configuration names other layers than the request");
    return { config: image.config, origin: image.origin, configDigest: digest };
  });
}
