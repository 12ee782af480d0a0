import { readTagsFrom } from "../../builds/tags/tag-from.ts";
import type { Invocation } from "../../command-line/command.ts";
import type { ResolvedBake, ResolvedTarget } from "../resolve.ts";

/** Returns the targets with what `--tag-from` gives: tags of names that have none, and labels that the files do not set. */
export async function withTagsFrom(bake: ResolvedBake, invocation: Invocation): Promise<ResolvedBake> {
  const from = await readTagsFrom(invocation, invocation.runtime.workingDirectory);
  if (from === undefined) return bake;
  const tagged = (target: ResolvedTarget): ResolvedTarget => {
    const { tags = [], labels } = target.fields;
    if (tags.length === 0) return target;
    const fields = { ...target.fields, tags: from.namesFrom(tags), labels: { ...from.labels, ...labels } };
    return { ...target, fields };
  };
  return { ...bake, targets: new Map([...bake.targets].map(([name, target]) => [name, tagged(target)])) };
}
