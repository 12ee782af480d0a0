/** Notes the registry image that an image was built on: exports take the base's layers from there if the service keeps none. */
import { parseReference } from "../../service/images/reference.ts";
import type { Store } from "../../store/store.ts";

/** Notes the registry address of `reference`, by which `image` was found. */
export function noteReference(image: string, reference: string, { facts }: Pick<Store, "facts">): void {
  const parsed = parseReference(reference);
  // An image that bough has built already has a noted base, whatever its name.
  if (parsed.kind !== "registry" || facts.get(image, questions.base) !== undefined) return;
  if (facts.get(image, questions.url) !== parsed.url) facts.set(image, questions.url, parsed.url);
}

export function noteBase(image: string, base: string, { facts }: Pick<Store, "facts">): void {
  if (facts.get(image, questions.base) !== base) facts.set(image, questions.base, base);
}

/** Returns the `docker://...` URL of the base; `undefined` if none is known. */
export function notedBase(image: string, { facts }: Pick<Store, "facts">): string | undefined {
  const passed = new Set<string>();
  for (let at: string | undefined = image; at !== undefined && !passed.has(at); ) {
    passed.add(at);
    const base: string | undefined = facts.get(at, questions.base);
    if (base === undefined) return facts.get(at, questions.url);
    at = base;
  }
  return undefined;
}

const questions = { base: "base", url: "registry" } as const;
