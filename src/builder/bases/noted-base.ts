/** Which image of a registry an image was built on: an export of a service that keeps no layers has the base's by it. */
import { parseReference } from "../../service/images/reference.ts";
import type { Store } from "../../store/store.ts";

/** `reference`: what `image` was found by. */
export function noteReference(image: string, reference: string, { facts }: Pick<Store, "facts">): void {
  const parsed = parseReference(reference);
  // What bough has built has a base itself, whatever name it has got.
  if (parsed.kind !== "registry" || facts.get(image, questions.base) !== undefined) return;
  if (facts.get(image, questions.url) !== parsed.url) facts.set(image, questions.url, parsed.url);
}

export function noteBase(image: string, base: string, { facts }: Pick<Store, "facts">): void {
  if (facts.get(image, questions.base) !== base) facts.set(image, questions.base, base);
}

/** `docker://...` of the base; `undefined` where none is known. */
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
