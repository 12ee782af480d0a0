import type { LinkPolicy } from "./copy-from-image.ts";

/**
 * When a file of a layer may itself become a file of another image: a second name of it, for which nothing is copied. Never where
 * a command is about to run in the upper directory, since it would write to the layer; and not where the image shows the same file
 * under another name already, since BuildKit makes two files of them.
 *
 * @param shared layers that the image stands on
 * @param isSingle whether one source is all that is copied
 */
export function createLinkPolicies({
  isAllowed,
  shared,
  isSingle,
}: {
  isAllowed: boolean;
  shared: ReadonlySet<number>;
  isSingle: boolean;
}): () => LinkPolicy {
  const linked = new Map<number, LinkPolicy>();
  return () => {
    const policy: LinkPolicy = {
      allows({ layer }, stats) {
        if (!isAllowed || shared.has(layer)) return false;
        if (isSingle) return true;
        // Names of one file within one source stay names of one file.
        const { ino } = stats();
        const other = linked.get(ino);
        if (other === undefined) linked.set(ino, policy);
        return other === undefined || other === policy;
      },
    };
    return policy;
  };
}
