import { hasKeyMark, replaceKeyMark } from "../../builds/keys/key-in-tags.ts";
import { isPush } from "../entries.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedTarget } from "../resolve.ts";

/** True if a tag of any target has a place for the content key, or an option asks what is in registries by it. */
export function usesKeys(
  targets: ReadonlyMap<string, ResolvedTarget>,
  { options, runtime }: Pick<BakeInvocation, "options" | "runtime">,
): boolean {
  if (runtime.isPlugin === true) return false;
  return (
    options["skip-existing"] === true || options["drop-pushed"] === true || targets.values().some(isKeyed)
  );
}

/** True for a target whose image only registries are to keep, or that nobody has asked for. */
export function isDroppable({ isLinked, fields: { output = [] } }: ResolvedTarget): boolean {
  return isLinked || (output.length > 0 && output.every(isPush));
}

/** Returns the tags with the key. */
export function tagsOf({ fields: { tags = [] } }: ResolvedTarget, key: string | undefined): string[] {
  return tags.map((tag) => (key === undefined ? tag : replaceKeyMark(tag, key)));
}

function isKeyed({ fields: { tags = [], output = [] } }: ResolvedTarget): boolean {
  const texts = output.flatMap((entry) => Object.values(entry)).map(String);
  return [...tags, ...texts].some(hasKeyMark);
}
