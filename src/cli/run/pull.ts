import { requirePlatforms } from "../../builder/bases/base.ts";
import { rememberImage, rememberTag } from "../../builder/cache/image-records.ts";
import { supportOf } from "../../builder/service-support.ts";
import { BoughError } from "../../errors.ts";
import { isDigest } from "../../image/digest.ts";
import { parsePlatform } from "../../image/platform.ts";
import type { Message } from "../../messages/wording.ts";
import { lines, wording } from "../../messages/wording.ts";
import { parseReference, takesTag } from "../../service/images/reference.ts";
import type { Surroundings } from "../command-line/command.ts";
import { oneOf } from "../command-line/option-values.ts";
import { findImageArgument, noSuchImage } from "../references/image-argument.ts";
import type { Connection } from "../service/connection.ts";

/** The values of `--pull`. */
export const pullPolicies = ["missing", "always", "never"] as const;
export type PullPolicy = (typeof pullPolicies)[number];

export function readPullPolicy(text: string | undefined): PullPolicy | undefined {
  return text === undefined ? undefined : oneOf(text, pullPolicies, "--pull");
}

const importTimeoutSeconds = 1800;

interface PulledImage {
  image: string;
  fallbackHint?: Message;
  pull?: PullPolicy;
  /** `undefined` for the service's own platform. */
  platform?: string | undefined;
}

/** Finds the image that a command starts from. As in docker, a missing image is imported. */
export async function findOrPull(
  { image, fallbackHint, pull = "never", platform: wanted }: PulledImage,
  invocation: Surroundings,
  connection: Connection,
): Promise<string> {
  if (wanted !== undefined) await requirePlatforms([parsePlatform(wanted)], supportOf(connection.service));
  // Other services have images for a single platform, the one that was required above, and lack the field.
  const platform = (await supportOf(connection.service).platforms()) ? wanted : undefined;
  const stored = await findImageArgument(connection, image, platform);
  const source = pull === "never" ? undefined : registrySource(image);
  if (stored !== undefined && (pull !== "always" || source === undefined)) return stored;
  if (source === undefined) {
    const missing = await describeOtherPlatforms(connection, image, platform);
    if (missing !== undefined)
      throw new BoughError(
        missing,
        registrySource(image) && { hint: wording`${{ option: "pull" }} missing asks its registry for one.` },
      );
    const canImport = fallbackHint !== undefined && registrySource(image) !== undefined;
    const hint = canImport
      ? wording`${{ option: "pull" }} missing imports it. ${fallbackHint}`
      : fallbackHint;
    throw await noSuchImage(connection, image, hint);
  }
  const { service, store } = connection;
  const { url } = source;
  const isTaken = source.tag !== undefined && (await takesTag(source.tag, service.capabilities));
  const tag = isTaken ? source.tag : undefined;
  const { importWithProgress: importOne } = await import("../images/import-references.ts");
  try {
    const imported = await importOne(
      { url, tag, platform, timeoutSeconds: importTimeoutSeconds, credentials: undefined },
      service,
      invocation,
    );
    rememberImage(url, imported, store, platform);
    if (tag !== undefined) rememberTag(tag, imported, store);
    return imported;
  } catch (error) {
    if (!(error instanceof BoughError) || error.kind !== "failed" || stored !== undefined) throw error;
    const missing = await describeOtherPlatforms(connection, image, platform);
    const hint =
      missing === undefined ? (await noSuchImage(connection, image, fallbackHint)).hint : undefined;
    throw new BoughError(missing === undefined ? error.message : `${missing}; ${error.message}`, {
      hint: lines([hint, error.hint]),
      cause: error,
    });
  }
}

/** Returns the message if a name has images for other platforms only. */
async function describeOtherPlatforms(
  connection: Connection,
  image: string,
  platform: string | undefined,
): Promise<string | undefined> {
  const has = platform === undefined ? [] : await connection.service.platformsOf(image);
  return has.length === 0 ? undefined : `${image} has no image for ${platform}: it has ${has.join(", ")}`;
}

/** Returns the address to import a name from; `undefined` for a name that can only mean a stored image, and for an invalid one. */
function registrySource(reference: string): { url: string; tag: string | undefined } | undefined {
  if (isDigest(reference) || /^[0-9a-f]{8}[0-9a-f-]*$/i.test(reference)) return undefined;
  try {
    const parsed = parseReference(reference);
    return parsed.kind === "registry" ? parsed : undefined;
  } catch {
    return undefined;
  }
}
