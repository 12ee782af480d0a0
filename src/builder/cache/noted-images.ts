/** What this machine notes of images, for services that cannot store it or be asked for it. */
import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { type ImageOrigin, parseImageOrigin } from "../../image/history.ts";
import { parseReference, withLatest } from "../../service/images/reference.ts";
import { isTag } from "../../service/wire/image.ts";
import type { Store } from "../../store/store.ts";

/** `result`: the latest build that had the image as its result. `step`: the start of a step that failed on it. */
type Occasion = "result" | "step";

/** Notes an image's configuration if the service can't store it. `Env` has the Dockerfile's variables, none of the base's. */
export function noteConfiguration(
  image: string,
  config: ImageConfig,
  { facts }: Pick<Store, "facts">,
  occasion: Occasion = "result",
): void {
  facts.set(image, questions[occasion], JSON.stringify(config));
}

/** Returns the configuration that was noted for an image as a result; otherwise, for a failed step. */
export function notedConfiguration(image: string, { facts }: Pick<Store, "facts">): ImageConfig | undefined {
  const noted = facts.get(image, questions.result) ?? facts.get(image, questions.step);
  return noted === undefined ? undefined : parseImageConfig(JSON.parse(noted));
}

/** Notes an image's author and history for a service that can't store them. */
export function noteOrigin(image: string, origin: ImageOrigin, { facts }: Pick<Store, "facts">): void {
  facts.set(image, originQuestion, JSON.stringify(origin));
}

export function notedOrigin(image: string, { facts }: Pick<Store, "facts">): ImageOrigin | undefined {
  const noted = facts.get(image, originQuestion);
  return noted === undefined ? undefined : parseImageOrigin(JSON.parse(noted));
}

const originQuestion = "origin";

const questions: Readonly<Record<Occasion, string>> = {
  result: "configuration",
  step: "configuration at a failed step",
};

/** Notes the registry address of `reference`, by which `image` was found. */
export function noteReference(image: string, reference: string, { facts }: Pick<Store, "facts">): void {
  const parsed = parseReference(reference);
  // An image that bough has built already has a noted base, whatever its name.
  if (parsed.kind !== "registry" || facts.get(image, baseQuestions.base) !== undefined) return;
  if (facts.get(image, baseQuestions.url) !== parsed.url) facts.set(image, baseQuestions.url, parsed.url);
}

/** Notes the image that `image` was built on: exports take the base's layers from its registry if the service keeps none. */
export function noteBase(image: string, base: string, { facts }: Pick<Store, "facts">): void {
  if (facts.get(image, baseQuestions.base) !== base) facts.set(image, baseQuestions.base, base);
}

/** Returns the `docker://...` URL of the base; `undefined` if none is known. */
export function notedBase(image: string, { facts }: Pick<Store, "facts">): string | undefined {
  const passed = new Set<string>();
  for (let at: string | undefined = image; at !== undefined && !passed.has(at); ) {
    passed.add(at);
    const base: string | undefined = facts.get(at, baseQuestions.base);
    if (base === undefined) return facts.get(at, baseQuestions.url);
    at = base;
  }
  return undefined;
}

const baseQuestions = { base: "base", url: "registry" } as const;

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

/** Remembers the image of a tag that this machine has set, for a service that cannot be asked for it. It is no import. */
export function rememberTag(tag: string, image: string, { imports }: Memory): void {
  imports.set(taggedName(tag, undefined), image);
}

/** Returns the image that this machine has imported or tagged under a name, whichever it did last. */
export function recallNamed(reference: string, store: Memory, platform?: string): string | undefined {
  return store.imports.get(taggedName(reference, platform)) ?? recallImage(reference, store, platform);
}

export function recallImage(reference: string, { imports }: Memory, platform?: string): string | undefined {
  // Earlier versions of bough noted references as they were written.
  return (
    imports.get(nameOf(reference, platform)) ?? (platform === undefined ? imports.get(reference) : undefined)
  );
}

/** No reference has a space in it. */
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
