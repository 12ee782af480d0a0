import { BoughError } from "../../errors.ts";
import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { digestOf, isDigest } from "../../image/digest.ts";
import { type ImageOrigin, parseOrigin } from "../../image/history.ts";
import { layerMediaType } from "../../image/oci-layout.ts";
import { formatPlatform, parsePlatform } from "../../image/platform.ts";
import { jsonResponse, orRefuse, RequestError } from "../http/answers.ts";
import {
  asFields,
  type Fields,
  optionalFields,
  optionalNumber,
  optionalString,
  readBody,
  readStoreAddress,
  readString,
  refuse,
  refuseUnknown,
  requireTag,
} from "../http/fields.ts";
import { readImageConfig } from "../import/image-config.ts";
import { requireAcceptedRepository } from "../import/signature-policy.ts";
import { maxLayers } from "../import-limits.ts";
import { absentLayersOf } from "../records/absent-layers.ts";
import { requireImage } from "../records/images.ts";
import type { Route } from "../router.ts";
import { type DeclaredLayer, declareImage } from "../unpack/declare-image.ts";

/** Routes of the extension `remote-layers`: images whose layers are fetched when they are needed. */
export const remoteImageRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/images/remote",
    async answer({ state, request }) {
      const body = await readBody(request);
      refuseUnknown(body, [
        ...["source", "configuration", "config", "origin", "platform", "config_digest", "layers", "tag"],
      ]);
      const source = readStoreAddress(body, state);
      // A client that is refused imports the image instead, for which skopeo checks signatures.
      if (source.startsWith("docker://"))
        orRefuse(() => requireAcceptedRepository(source, state.environment), 403);
      const layers = readLayers(body, source, state.importLimits.bytes);
      const tag = optionalString(body, "tag");
      if (tag !== undefined) requireTag(tag);
      return jsonResponse(
        declareImage(state, { ...readDescription(body, source, layers, state), layers, tag }),
      );
    },
  },
  {
    method: "POST",
    path: "/v1/images/:uuid/probe",
    async answer({ state, parameters }) {
      const image = requireImage(state, parameters.uuid ?? "");
      if (absentLayersOf(state.database, image.layer).length === 0) return jsonResponse({ usable: true });
      const { probeImage } = await import("../unpack/probe-image.ts");
      return jsonResponse({ usable: await probeImage(state, image) });
    },
  },
];

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

function readLayers({ layers }: Fields, source: string, maxBytes: number): DeclaredLayer[] {
  if (!Array.isArray(layers)) return refuse("layers", "must be a list");
  if (layers.length > maxLayers) return refuse("layers", `must be at most ${maxLayers}`);
  return layers.map((item, index): DeclaredLayer => {
    const name = `layers[${index}]`;
    const fields = asFields(item, name);
    refuseUnknown(fields, ["media_type", "digest", "size", "diff_id", "created_at"], name);
    const mediaType = layerTypes.get(readString(fields, "media_type"));
    if (mediaType === undefined)
      return refuse(`${name}.media_type`, "is not that of a layer that bough can unpack");
    const size = optionalNumber(fields, "size", 0) ?? refuse(`${name}.size`, "is missing");
    if (size > maxBytes) return refuse(`${name}.size`, `is more than ${maxBytes}`);
    const created = optionalString(fields, "created_at");
    const createdAt = created === undefined ? undefined : Date.parse(created);
    if (Number.isNaN(createdAt)) return refuse(`${name}.created_at`, "is not a time");
    const [digest, diffId] = [readDigest(fields, "digest", name), readDigest(fields, "diff_id", name)];
    return { source, mediaType, digest, size, diffId, createdAt };
  });
}

function readDigest(fields: Fields, field: string, within: string): string {
  const digest = fields[field];
  return isDigest(digest) ? digest : refuse(`${within}.${field}`, "is not a digest of SHA-256");
}

interface Description {
  config: ImageConfig;
  origin: ImageOrigin;
  configDigest: string | undefined;
}

function readDescription(
  body: Fields,
  source: string,
  layers: readonly DeclaredLayer[],
  { isServer }: { isServer: boolean },
): Description {
  const configuration = optionalString(body, "configuration");
  if (configuration !== undefined) {
    refuseUnknown(body, ["source", "configuration", "layers", "tag"]);
    return readConfiguration(configuration, source, layers);
  }
  const platform = optionalString(body, "platform");
  const configDigest = optionalString(body, "config_digest");
  // Nothing shows that it is that of this configuration, and other clients would get this image for it.
  if (configDigest !== undefined && isServer)
    throw new RequestError(403, "config_digest is not allowed on a server: configuration is");
  if (configDigest !== undefined && !isDigest(configDigest))
    return refuse("config_digest", "is not a digest of SHA-256");
  const fields = optionalFields(body, "config") ?? refuse("config", "is missing");
  const config = parseImageConfig(fields, (problem) => refuse("config", problem));
  const origin = parseOrigin(optionalFields(body, "origin") ?? {}, (problem) => {
    throw new RequestError(400, `origin: ${problem}`);
  });
  if (platform !== undefined) origin.platform = orRefuse(() => formatPlatform(parsePlatform(platform)));
  return { config, origin, configDigest };
}

/** Reads the image's own configuration, which has to name the content of the layers. */
function readConfiguration(text: string, source: string, layers: readonly DeclaredLayer[]): Description {
  return orRefuse(() => {
    const bytes = new TextEncoder().encode(text);
    const digest = digestOf(bytes);
    const image = readImageConfig({ config: { bytes, digest }, layers }, source);
    if (layers.some(({ diffId }, index) => diffId !== image.diffIds[index]))
      throw new BoughError("the configuration names other layers than the request");
    return { config: image.config, origin: image.origin, configDigest: digest };
  });
}
