/** Records of this machine about images, for services that cannot store them or be asked for them. */
import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { type ImageOrigin, parseImageOrigin } from "../../image/history.ts";
import { parseReference, withLatest } from "../../service/images/reference.ts";
import { isTag } from "../../service/wire/image.ts";
import type { Store } from "../../store/store.ts";

/** `result`: a build had the image as its result. `step`: a step that failed began with it. */
type Occasion = "result" | "step";

/** Records an image's configuration if the service can't store it. `Env` has the Dockerfile's variables, none of the base's. */
export function recordConfiguration(
  image: string,
  config: ImageConfig,
  { imageMetadata }: Pick<Store, "imageMetadata">,
  occasion: Occasion = "result",
): void {
  imageMetadata.set(image, configurationKeys[occasion], JSON.stringify(config));
}

/** Returns the configuration that was recorded of an image as a result; otherwise, that of a failed step. */
export function recordedConfiguration(
  image: string,
  { imageMetadata }: Pick<Store, "imageMetadata">,
): ImageConfig | undefined {
  const text =
    imageMetadata.get(image, configurationKeys.result) ?? imageMetadata.get(image, configurationKeys.step);
  return text === undefined ? undefined : parseImageConfig(JSON.parse(text));
}

/** Records an image's author and history for a service that can't store them. */
export function recordOrigin(
  image: string,
  origin: ImageOrigin,
  { imageMetadata }: Pick<Store, "imageMetadata">,
): void {
  imageMetadata.set(image, originKey, JSON.stringify(origin));
}

export function recordedOrigin(
  image: string,
  { imageMetadata }: Pick<Store, "imageMetadata">,
): ImageOrigin | undefined {
  const text = imageMetadata.get(image, originKey);
  return text === undefined ? undefined : parseImageOrigin(JSON.parse(text));
}

const originKey = "origin";

const configurationKeys: Readonly<Record<Occasion, string>> = {
  result: "configuration",
  step: "configuration at a failed step",
};

/** Records the registry address of `reference`, by which `image` was found. */
export function recordReference(
  image: string,
  reference: string,
  { imageMetadata }: Pick<Store, "imageMetadata">,
): void {
  const parsed = parseReference(reference);
  // An image that bough has built already has a recorded base, whatever its name.
  if (parsed.kind !== "registry" || imageMetadata.get(image, baseKeys.base) !== undefined) return;
  if (imageMetadata.get(image, baseKeys.url) !== parsed.url)
    imageMetadata.set(image, baseKeys.url, parsed.url);
}

/** Records the image that `image` was built on: exports take the base's layers from its registry if the service keeps none. */
export function recordBase(
  image: string,
  base: string,
  { imageMetadata }: Pick<Store, "imageMetadata">,
): void {
  if (imageMetadata.get(image, baseKeys.base) !== base) imageMetadata.set(image, baseKeys.base, base);
}

/** Returns the `docker://...` URL of the base; `undefined` if none is known. */
export function recordedBase(
  image: string,
  { imageMetadata }: Pick<Store, "imageMetadata">,
): string | undefined {
  const passed = new Set<string>();
  for (let at: string | undefined = image; at !== undefined && !passed.has(at); ) {
    passed.add(at);
    const base: string | undefined = imageMetadata.get(at, baseKeys.base);
    if (base === undefined) return imageMetadata.get(at, baseKeys.url);
    at = base;
  }
  return undefined;
}

const baseKeys = { base: "base", url: "registry" } as const;

type Memory = Pick<Store, "imports">;

/**
 * Remembers an image that this machine has imported, by its name.
 *
 * @param platform set for another one than the service's own
 */
export function rememberImage(
  reference: string,
  image: string,
  { imports }: Memory,
  platform?: string,
): void {
  imports.set(nameOf(reference, platform), image);
  imports.forget(taggedName(reference, platform));
}

/** Remembers the image of a tag that this machine has set, for a service that cannot be asked for it. */
export function rememberTag(tag: string, image: string, { imports }: Memory): void {
  imports.set(taggedName(tag, undefined), image);
}

/** Returns the image that this machine has imported or tagged under a name, whichever it has done last. */
export function lookUpNamedImage(reference: string, store: Memory, platform?: string): string | undefined {
  return store.imports.get(taggedName(reference, platform)) ?? lookUpImage(reference, store, platform);
}

/** Returns the image that this machine has imported under a name. */
export function lookUpImage(reference: string, { imports }: Memory, platform?: string): string | undefined {
  // Earlier versions of bough stored references as they were written.
  return (
    imports.get(nameOf(reference, platform)) ?? (platform === undefined ? imports.get(reference) : undefined)
  );
}

/** A reference has no space in it, so this name is never that of an import. */
function taggedName(reference: string, platform: string | undefined): string {
  return `tagged ${nameOf(reference, platform)}`;
}

/** Returns the same name for all spellings of a reference. A `docker://` address means the registry's image, whatever has its tag. */
function nameOf(reference: string, platform: string | undefined): string {
  const suffix = platform === undefined ? "" : ` ${platform}`;
  if (isTag(reference)) return withLatest(reference.replace(/^tag:/, "")) + suffix;
  const parsed = parseReference(reference);
  return (parsed.kind === "registry" ? parsed.url : reference) + suffix;
}
