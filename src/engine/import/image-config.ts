import { BoughError } from "../../errors.ts";
import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { type ImageOrigin, parseOrigin } from "../../image/history.ts";
import { sha256Of } from "../../sha256.ts";
import { maxLayers } from "../import-limits.ts";
import { machineArchitecture } from "../system/machine.ts";
import { asObject, asTexts, optionalText, parseJson } from "./image-files.ts";
import { type ImageParts, requireDigest } from "./image-parts.ts";

/** The contents of an image's configuration. */
export interface ImportedConfig {
  /** The configuration's digest. It names the content of every layer, so equal digests are equal images. */
  configDigest: string;
  /** Equal for equal root file systems. */
  contentDigest: string;
  /** Digests of the layers' uncompressed contents, the lowest first. */
  diffIds: readonly string[];
  platform: { os: string | undefined; architecture: string | undefined };
  config: ImageConfig;
  origin: ImageOrigin;
}

/** Reads an image's configuration. Throws if it has another number of layers than the manifest. */
export function readImageConfig(
  { config, layers }: Pick<ImageParts, "config"> & { layers: { length: number } },
  name: string,
): ImportedConfig {
  const what = `the configuration of ${name}`;
  const json = asObject(parseJson(config.bytes, what), what);
  const rootfs = asObject(json.rootfs ?? {}, what);
  const diffIds = asTexts(rootfs.diff_ids, what).map((diffId) => requireDigest(diffId, what));
  if (layers.length !== diffIds.length) {
    const count = layers.length === 1 ? "1 layer" : `${layers.length} layers`;
    throw new BoughError(
      `${name} is damaged or forged: its manifest has ${count}, its configuration has ${diffIds.length}`,
    );
  }
  if (layers.length > maxLayers) throw new BoughError(`${name} has more than ${maxLayers} layers`);
  return {
    configDigest: config.digest,
    contentDigest: contentDigestOf(diffIds),
    diffIds,
    platform: { os: optionalText(json.os), architecture: optionalText(json.architecture) },
    origin: parseOrigin(json),
    config: parseImageConfig(asObject(json.config ?? {}, what), (problem) => {
      throw new BoughError(`${what} is malformed: ${problem}`);
    }),
  };
}

/** Returns the digest of a root file system: that of its layers' uncompressed contents. */
export function contentDigestOf(diffIds: readonly string[]): string {
  return sha256Of(JSON.stringify(diffIds));
}

/** Refuses an image for another platform. `name`: the image's, for the message. */
export function requirePlatform(platform: ImportedConfig["platform"], name: string): void {
  const machine = machineArchitecture();
  const { os = "linux", architecture = machine } = platform;
  if (os === "linux" && architecture === machine) return;
  throw new BoughError(`${name} is an image for ${os}/${architecture}, and this machine is linux/${machine}`);
}
