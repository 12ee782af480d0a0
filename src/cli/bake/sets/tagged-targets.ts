import { readTagsFrom } from "../../builds/tags/tag-from.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedBake, ResolvedTarget } from "../resolve.ts";

/** Returns the targets with what `--tag-from` gives: tags of names that have none, and labels that the files do not set. */
export async function withTagsFrom(bake: ResolvedBake, invocation: BakeInvocation): Promise<ResolvedBake> {
  const from = await readTagsFrom(
    invocation.options["tag-from"] ?? [],
    invocation.runtime.workingDirectory,
    invocation,
  );
  if (from === undefined) return bake;
  const tagged = (target: ResolvedTarget): ResolvedTarget => {
    const { tags = [], labels } = target.fields;
    if (tags.length === 0) return target;
    const fields = { ...target.fields, tags: from.namesFrom(tags), labels: { ...from.labels, ...labels } };
    return { ...target, fields };
  };
  return { ...bake, targets: new Map([...bake.targets].map(([name, target]) => [name, tagged(target)])) };
}
