import type { Log } from "../../../terminal/log.ts";
import type { BakedTarget } from "../../builds/inputs.ts";
import { hasKeyMark, replaceKeyMark } from "../../builds/keys/key-in-tags.ts";
import { type ConnectTo, keyedBuild } from "../../builds/keys/keyed-build.ts";
import { skippableBuild } from "../../builds/keys/skippable.ts";
import type { Invocation } from "../../command-line/command.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { buildOf, type ImageOf } from "../target-request.ts";
import { type ExistingTarget, findExisting, skippedAmong } from "./existing-targets.ts";
import { createTargetKeys } from "./target-keys.ts";

interface Surroundings {
  imageOf: ImageOf;
  connectTo: ConnectTo;
  log: Log;
  signal: AbortSignal;
}

/** What is asked of the targets of a bake, with their content keys. */
export interface TargetRequests {
  /** Returns the request of a target whose turn has come. */
  requestOf(target: ResolvedTarget): Promise<Invocation & BakedTarget>;
  /** With `--skip-existing`: the targets that are not built. One that was not asked for has no image of its own. */
  skipped: ReadonlyMap<string, ExistingTarget | undefined>;
}

/**
 * If a tag of any target has a place for the content key, or with `--skip-existing`, all are built from what their keys are made of:
 * such a target may be made of another one.
 */
export async function prepareRequests(
  targets: ReadonlyMap<string, ResolvedTarget>,
  { imageOf, connectTo, log, signal }: Surroundings,
  invocation: Invocation,
): Promise<TargetRequests> {
  const { values, runtime } = invocation;
  const skips = values.flag("skip-existing");
  if (runtime.isPlugin === true || !(skips || targets.values().some(isKeyed)))
    return {
      requestOf: async (target) => buildOf(target, imageOf, invocation),
      skipped: new Map(),
    };
  const keys = createTargetKeys(targets, connectTo, invocation);
  const existing = skips
    ? await findExisting(targets, keys, { log, signal }, invocation)
    : new Map<string, ExistingTarget>();
  const skipped = skips ? skippedAmong(targets, existing) : new Set<string>();
  return {
    skipped: new Map([...skipped].map((name) => [name, existing.get(name)])),
    async requestOf(target) {
      const found = await keys.findAgain(target);
      const { key } = found;
      // What starts from it needs it here; the registry has it.
      const isThere = existing.get(target.name)?.key === key;
      const fields = isThere ? { ...target.fields, output: [{ type: "cacheonly" }] } : target.fields;
      const own = buildOf({ ...target, key, fields }, imageOf, invocation);
      const options = skips && !isThere ? (skippableBuild(own, key)?.values ?? own.values) : own.values;
      const keyed = keyedBuild(found, () => keys.findAgain(target));
      return { ...own, values: options, keyed };
    },
  };
}

/** Returns the tags with the key. */
export function tagsOf({ fields: { tags = [] } }: ResolvedTarget, key: string | undefined): string[] {
  return tags.map((tag) => (key === undefined ? tag : replaceKeyMark(tag, key)));
}

function isKeyed({ fields: { tags = [], output = [] } }: ResolvedTarget): boolean {
  const texts = output.flatMap((entry) => Object.values(entry)).map(String);
  return [...tags, ...texts].some(hasKeyMark);
}
