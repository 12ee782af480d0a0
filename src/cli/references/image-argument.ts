import {
  lookUpImage,
  lookUpNamedImage,
  recordedConfiguration,
  recordedOrigin,
} from "../../builder/cache/image-records.ts";
import { supportOf } from "../../builder/service-support.ts";
import { BoughError } from "../../errors.ts";
import type { ImageConfig } from "../../image/config.ts";
import { isDigest } from "../../image/digest.ts";
import type { ImageOrigin } from "../../image/history.ts";
import { formatPlatform, parsePlatform, requirePlatform } from "../../image/platform.ts";
import { type Message, wording } from "../../messages/wording.ts";
import type { Service } from "../../service/client.ts";
import { areEqualNames, isUuid, startsAlike, withLatest } from "../../service/images/reference.ts";
import type { FoundImage } from "../../service/service.ts";
import type { ImageRecord } from "../../service/wire/image.ts";
import type { Store } from "../../store/store.ts";
import { nearest } from "../../suggest.ts";
import type { Connection } from "../service/connection.ts";

/** The description of the argument in help texts. */
export const imageDescription = "A UUID or its first 8 digits, tag:NAME, or a tag";

type ImageLookup = Pick<Connection, "service" | "store">;

/**
 * Finds the image that a user names by a UUID, its first digits, `tag:NAME` or a bare tag, in Docker's full or short form. Returns a
 * reference for calls of the service. `fallbackHint`: the hint of the error if there is no similar tag either.
 */
export async function resolveImageArgument(
  connection: ImageLookup,
  reference: string,
  fallbackHint?: Message,
): Promise<string> {
  return resolve(connection, reference, { takesEqualNames: true, fallbackHint });
}

/**
 * Finds an image as `resolveImageArgument` does, to remove it or its tag, but by the exact tag only: a second removal by the same name
 * must not remove an image with another tag.
 */
export async function resolveRemovedImage(connection: ImageLookup, reference: string): Promise<string> {
  return resolve(connection, reference, { takesEqualNames: false });
}

async function resolve(
  connection: ImageLookup,
  reference: string,
  { takesEqualNames, fallbackHint }: { takesEqualNames: boolean; fallbackHint?: Message | undefined },
): Promise<string> {
  const found = await findReferenced(connection, reference, takesEqualNames);
  if (found !== undefined) return found;
  throw await noSuchImage(connection, reference, fallbackHint);
}

/** Finds an image as `resolveImageArgument` does; returns `undefined` if there is none. */
export function findImageArgument(
  connection: ImageLookup,
  reference: string,
  platform?: string,
): Promise<string | undefined> {
  return findReferenced(connection, reference, true, platform);
}

async function findReferenced(
  connection: ImageLookup,
  reference: string,
  takesEqualNames: boolean,
  platform?: string,
): Promise<string | undefined> {
  const found = await findNamedImage(connection, reference, takesEqualNames, platform);
  if (found !== "unsupported") requirePlatform(found?.platform, platform, reference);
  else {
    // A tag that this machine has set may name another image by now, which must not be removed by mistake.
    const known = takesEqualNames ? lookUpNamedImage(reference, connection.store, platform) : undefined;
    return known ?? `tag:${withLatest(reference.replace(/^tag:/, ""))}`;
  }
  return found?.uuid;
}

/** Parses `--platform` into the form of image records. */
export function readPlatform(text: string | undefined): string | undefined {
  return text === undefined ? undefined : formatPlatform(parsePlatform(text));
}

/** Returns the error about a missing image. `fallbackHint`: the hint if there is no similar tag. */
export async function noSuchImage(
  { service }: Pick<ImageLookup, "service">,
  reference: string,
  fallbackHint?: Message,
): Promise<BoughError> {
  return new BoughError(`${service.address} has no image ${reference}`, {
    hint: await hintFor(service, reference, fallbackHint),
  });
}

/** Finds an image with its configuration and origin, and the tag that it was named by. */
export async function resolveDescribedImage(
  connection: ImageLookup,
  reference: string,
): Promise<ImageDescription & { uuid: string; tag: string | undefined }> {
  const found = await findNamedImage(connection, reference, true);
  const known = found === "unsupported" ? undefined : found;
  const uuid = known?.uuid ?? (await resolveImageArgument(connection, reference));
  const tag = isIdPrefix(uuid, reference) ? undefined : withLatest(reference.replace(/^tag:/, ""));
  return { uuid, tag, ...describeImage(uuid, known, connection) };
}

/** True for the id of an image, or its first digits. */
export function isIdPrefix(uuid: string, reference: string): boolean {
  return uuid === reference || (idPrefix.test(reference) && startsAlike(uuid, reference));
}

const idPrefix = /^[0-9a-f]{8}[0-9a-f-]*$/i;

/** Finds an image by tag or id. A tag that looks like an id wins. Images of sessions count as well, since some services list only tagged images. */
async function findNamedImage(
  { service, store }: ImageLookup,
  reference: string,
  takesEqualNames: boolean,
  platform?: string,
): Promise<FoundImage | undefined | "unsupported"> {
  const written = isDigest(reference) ? lookUpImage(reference, store, platform) : undefined;
  const found = await service.findImage(written ?? reference, platform);
  if (found !== undefined && found !== "unsupported") return found;
  if (isUuid(reference) || isDigest(reference)) return found;
  const listed = await service.listImages();
  const matches = new Set(
    [...listed.map(({ uuid }) => uuid), ...store.sessions.images()].filter((uuid) =>
      isIdPrefix(uuid, reference),
    ),
  );
  const [uuid, ...others] = matches;
  if (uuid === undefined) {
    const tag = takesEqualNames ? equalTag(reference, listed) : undefined;
    return tag === undefined ? found : service.findImage(tag, platform);
  }
  // An id that is not a UUID would be looked up as a tag.
  if (others.length === 0) return isUuid(uuid) ? service.findImage(uuid) : { uuid };
  throw new BoughError(`${reference} is ambiguous: the ids of ${matches.size} images begin with it`, {
    hint: wording`Give more digits${wording`; ${{ command: "images", options: [{ option: "all" }, { option: "wide" }] }} lists them`}.`,
  });
}

/** Returns an image with a tag, and all others with the same tag, which may name an image for each platform. */
export async function imagesOfTag(
  tag: string,
  image: string,
  { service }: Pick<Connection, "service">,
): Promise<Set<string>> {
  if (!(await supportOf(service).platforms())) return new Set([image]);
  const records = await service.listImages({ tag });
  return new Set([image, ...records.flatMap((record) => (record.tag === tag ? record.uuid : []))]);
}

export async function tagsOf(image: string, connection: Pick<Connection, "service">): Promise<string[]> {
  return (await recordsOf(image, connection)).flatMap(({ tag }) => tag ?? []);
}

/** Returns the shortest tag that is another spelling of the same name in Docker. */
function equalTag(name: string, images: readonly ImageRecord[]): string | undefined {
  const tags = images.flatMap(({ tag }) => (tag !== null && areEqualNames(tag, name) ? tag : []));
  return tags.toSorted((one, other) => one.length - other.length)[0];
}

/** Returns the records of an image, one for each of its tags. */
export async function recordsOf(
  image: string,
  { service }: Pick<Connection, "service">,
): Promise<ImageRecord[]> {
  const records = await service.listImages({ uuid: image });
  // A service that does not know the filter lists all images.
  return records.filter(({ uuid }) => uuid === image);
}

/** Returns the image of a session; throws if it has none. */
export function requireSessionImage(store: Store, key: string): string {
  const head = store.branches.head(key);
  if (head !== undefined) return head.image;
  const branch = store.branches.active(key);
  const hasOthers = store.branches.list(key).length > 0;
  throw new BoughError(`session ${key} has no image${hasOthers ? ` on its branch ${branch}` : ""}`, {
    hint: hasOthers
      ? wording`${wording`${{ command: "session checkout", words: ["BRANCH"], session: key }} switches to another branch; `}${{ command: "use", words: ["IMAGE"], session: key }} sets an image for this one.`
      : wording`${wording`${{ command: "use", words: ["IMAGE"], session: key }} sets one, ${{ command: "run", words: ["IMAGE"] }} and ${{ command: "shell", words: ["IMAGE"] }} need none; `}${{ command: "images" }} lists the images.`,
  });
}

async function hintFor(
  service: Service,
  reference: string,
  fallbackHint: Message = wording`${{ command: "images" }} lists its images${wording`; ${{ command: "images import", words: ["REFERENCE"] }} imports one from a registry`}.`,
): Promise<Message> {
  const images = await service.listImages({ tagged: true });
  const tags = images.flatMap(({ tag }) => tag ?? []);
  const name = reference.replace(/^tag:/, "");
  const guess =
    equalTag(name, images) ?? tags.find((tag) => tag.startsWith(`${name}:`)) ?? nearest(name, tags);
  return guess === undefined ? fallbackHint : `Did you mean ${guess}?`;
}

/** The configuration and origin of an image, from bough's own records, else from the service, else empty. */
export interface ImageDescription {
  config: ImageConfig;
  origin: ImageOrigin;
}

export async function findDescription(
  image: string,
  connection: Pick<Connection, "service" | "store">,
): Promise<ImageDescription> {
  const found = await connection.service.findImage(image);
  return describeImage(image, found === "unsupported" ? undefined : found, connection);
}

function describeImage(
  image: string,
  found: FoundImage | undefined,
  { store }: Pick<Connection, "store">,
): ImageDescription {
  return {
    config: recordedConfiguration(image, store) ?? found?.config ?? {},
    origin: { ...found?.origin, ...recordedOrigin(image, store) },
  };
}
