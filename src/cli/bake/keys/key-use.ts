import { hasKeyMark, replaceKeyMark } from "../../builds/keys/key-in-tags.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { isPush } from "../target-entries.ts";

/** True if a tag of any target contains `{key}`, or an option needs content keys. */
export function usesKeys(
  targets: ReadonlyMap<string, ResolvedTarget>,
  { options, runtime }: Pick<BakeInvocation, "options" | "runtime">,
): boolean {
  if (runtime.isPlugin === true) return false;
  return (
    options["skip-existing"] === true ||
    options["drop-pushed"] === true ||
    targets.values().some(hasKeyPlaceholder)
  );
}

/** True for a target whose image only registries have to keep, or that was not asked for. */
export function isDroppable({ isLinked, fields: { output = [] } }: ResolvedTarget): boolean {
  return isLinked || (output.length > 0 && output.every(isPush));
}

/** Returns the tags of a target with its key in the place of `{key}`. */
export function tagsWithKey({ fields: { tags = [] } }: ResolvedTarget, key: string | undefined): string[] {
  return tags.map((tag) => (key === undefined ? tag : replaceKeyMark(tag, key)));
}

function hasKeyPlaceholder({ fields: { tags = [], output = [] } }: ResolvedTarget): boolean {
  const texts = output.flatMap((entry) => Object.values(entry)).map(String);
  return [...tags, ...texts].some(hasKeyMark);
}
