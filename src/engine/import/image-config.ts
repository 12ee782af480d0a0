import { BoughError, messageOf } from "../../errors.ts";
import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { type ImageOrigin, parseImageOrigin } from "../../image/history.ts";
import {
  canRunOn,
  formatPlatform,
  machineArchitecture,
  machinePlatform,
  type Platform,
  parsePlatform,
} from "../../image/platform.ts";
import { sha256Of } from "../../sha256.ts";
import { maxLayers } from "../import-limits.ts";
import { asObject, asTexts, type JsonObject, optionalText, parseJsonBytes } from "./image-files.ts";
import { type ImageParts, requireDigest } from "./image-parts.ts";

/** The contents of an image's configuration. */
export interface ImportedConfig {
  /** The configuration's digest. It names the content of every layer, so equal digests are equal images. */
  configDigest: string;
  /** The digest of the root file system. */
  contentDigest: string;
  /** Digests of the layers' uncompressed contents, the lowest first. */
  diffIds: readonly string[];
  platform: Platform;
  config: ImageConfig;
  origin: ImageOrigin;
}

/** Reads an image's configuration. Throws if it has another number of layers than the manifest. */
export function readImageConfig(
  { config, layers }: Pick<ImageParts, "config"> & { layers: { length: number } },
  name: string,
): ImportedConfig {
  const what = `the configuration of ${name}`;
  const json = asObject(parseJsonBytes(config.bytes, what), what);
  const rootfs = asObject(json.rootfs ?? {}, what);
  const diffIds = asTexts(rootfs.diff_ids, what).map((diffId) => requireDigest(diffId, what));
  if (layers.length !== diffIds.length) {
    const count = layers.length === 1 ? "1 layer" : `${layers.length} layers`;
    throw new BoughError(
      `${name} is damaged or forged: its manifest has ${count}, its configuration has ${diffIds.length}`,
    );
  }
  if (layers.length > maxLayers) throw new BoughError(`${name} has more than ${maxLayers} layers`);
  const platform = readPlatform(json, what);
  return {
    configDigest: config.digest,
    contentDigest: contentDigestOf(diffIds),
    diffIds,
    platform,
    origin: {
      ...parseImageOrigin({ author: json.author, history: json.history }),
      platform: formatPlatform(platform),
    },
    config: parseImageConfig(asObject(json.config ?? {}, what), (problem) => {
      throw new BoughError(`${what} is malformed: ${problem}`);
    }),
  };
}

/** Reads an image's platform; by default, this machine's. */
function readPlatform(json: JsonObject, what: string): Platform {
  const [os = "linux", architecture = machineArchitecture()] = [
    optionalText(json.os),
    optionalText(json.architecture),
  ];
  const variant = optionalText(json.variant) || undefined;
  try {
    return parsePlatform([os, architecture, ...(variant === undefined ? [] : [variant])].join("/"));
  } catch (error) {
    throw new BoughError(`${what} is malformed: ${messageOf(error)}`);
  }
}

/** Returns the digest of a root file system: that of its layers' uncompressed contents. */
export function contentDigestOf(diffIds: readonly string[]): string {
  return sha256Of(JSON.stringify(diffIds));
}

/** Returns the wanted platform of an import, by default the machine's. */
export function platformOrMachines(wanted: Platform | undefined): Platform {
  return wanted ?? parsePlatform(machinePlatform());
}

/** Throws for an image of another platform than the `wanted` one, by default the machine's. `name` is the image's in the message. */
export function requireImagePlatform(image: Platform, name: string, wanted?: Platform): void {
  if (canRunOn(image, platformOrMachines(wanted))) return;
  const which =
    wanted === undefined ? `this machine is ${machinePlatform()}` : `${formatPlatform(wanted)} is wanted`;
  throw new BoughError(`${name} is an image for ${formatPlatform(image)}, and ${which}`);
}
