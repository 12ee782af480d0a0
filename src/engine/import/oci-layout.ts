import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import type { ImageConfig } from "../records/images.ts";

/** What the one image of an OCI layout says of itself. */
export interface LayoutImage {
  /** Of the configuration, which names every layer: equal digests are equal images. */
  configDigest: string;
  /** Equal where the root file systems are. */
  contentDigest: string;
  platform: { os: string | undefined; architecture: string | undefined };
  config: ImageConfig;
}

export function readLayoutImage(directory: string): LayoutImage {
  const index = readJson(join(directory, "index.json"));
  const [manifest] = asList(index.manifests);
  const configDigest = asText(readBlob(directory, asText(manifest?.digest)).config, "digest");
  const config = readBlob(directory, configDigest);
  const rootfs = (config.rootfs ?? {}) as Json;
  const diffIds = Array.isArray(rootfs.diff_ids) ? rootfs.diff_ids : [];
  const settings = (config.config ?? {}) as Json;
  const env = asTexts(settings.Env);
  return {
    configDigest,
    contentDigest: new Bun.CryptoHasher("sha256").update(JSON.stringify(diffIds)).digest("hex"),
    platform: { os: optionalText(config.os), architecture: optionalText(config.architecture) },
    config: {
      env: Object.fromEntries(env.map(splitVariable)),
      workingDirectory: optionalText(settings.WorkingDir),
      user: optionalText(settings.User),
      onbuild: asTexts(settings.OnBuild),
      shell: asTexts(settings.Shell),
    },
  };
}

type Json = Record<string, unknown>;

function readBlob(directory: string, digest: string): Json {
  const [algorithm, hash] = digest.split(":");
  return readJson(join(directory, "blobs", algorithm ?? "", hash ?? ""));
}

function readJson(path: string): Json {
  return JSON.parse(readFileSync(path, "utf8")) as Json;
}

function asTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : [];
}

function asList(value: unknown): Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

function asText(value: unknown, property?: string): string {
  const text = property === undefined ? value : (value as Json | undefined)?.[property];
  if (typeof text !== "string") throw new BoughError("the image's manifest is malformed");
  return text;
}

function optionalText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function splitVariable(entry: string): [string, string] {
  const end = entry.indexOf("=");
  return end === -1 ? [entry, ""] : [entry.slice(0, end), entry.slice(end + 1)];
}
