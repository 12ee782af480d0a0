import { chooseBestImage, parsePlatform } from "../../image/platform.ts";
import type { FoundImage } from "../service.ts";
import type { ImageRecord } from "../wire/image.ts";
import { areEqualNames, withLatest } from "./reference.ts";

/** Returns the image with this tag, as written and then with `:latest`. A tag may name an image for each platform. */
export function chooseTagged(
  listed: readonly ImageRecord[],
  name: string,
  platform: string | undefined,
): ImageRecord | undefined {
  const choose = (tag: string) => {
    const named = listed.filter((image) => image.tag === tag);
    if (platform === undefined) return named[0];
    // A service that does not report platforms has images for one platform.
    const wanted = parsePlatform(platform);
    return chooseBestImage(named, wanted, (image) => parsePlatform(image.platform ?? platform));
  };
  return choose(name) ?? choose(withLatest(name));
}

/** Returns the platforms of the images that have a tag, or Docker's other name for it. */
export function platformsAmong(listed: readonly ImageRecord[], tag: string): string[] {
  const name = tag.replace(/^tag:/, "");
  const found = listed.filter((image) => image.tag !== null && areEqualNames(image.tag, name));
  return [...new Set(found.flatMap(({ platform }) => platform ?? []))].toSorted();
}

/** Converts an image's record. */
export function foundImage(record: ImageRecord): FoundImage {
  const { uuid, identity, platform, oci_config: config, oci_author: author, oci_history: history } = record;
  const origin = {
    ...(author === undefined ? {} : { author }),
    ...(history === undefined ? {} : { history }),
    ...(platform === undefined ? {} : { platform }),
  };
  const hasOrigin = Object.keys(origin).length > 0;
  return {
    uuid,
    ...(config === undefined ? {} : { config }),
    ...(hasOrigin ? { origin } : {}),
    ...(identity === undefined ? {} : { identity }),
    ...(platform === undefined ? {} : { platform }),
  };
}
