import { BoughError, usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { forEachConcurrently } from "../../../service/http/concurrency.ts";
import type { Log } from "../../../terminal/log.ts";
import { createExistingImages } from "../../builds/keys/existing-image.ts";
import { isForced, skippableBuild } from "../../builds/keys/skippable.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { buildOf, placeholder } from "../target-request.ts";
import { maxConcurrentKeys, type TargetKeys } from "./target-keys.ts";

/** The image of a target that is in the registries of its tags already. */
export interface ExistingTarget {
  key: string;
  digest: string;
}

/**
 * Finds the targets whose images, by their content keys, are where they would be pushed. A target for which this fails is built, and
 * its build reports the error.
 */
export async function findExisting(
  targets: ReadonlyMap<string, ResolvedTarget>,
  keys: TargetKeys,
  { log, signal }: { log: Pick<Log, "warn">; signal: AbortSignal },
  invocation: BakeInvocation,
): Promise<Map<string, ExistingTarget>> {
  const images = createExistingImages(invocation.runtime, signal);
  const found = new Map<string, ExistingTarget>();
  let skippable = 0;
  const find = async (target: ResolvedTarget) => {
    const { key } = await keys.keyOf(target);
    const request = buildOf({ ...target, key }, () => placeholder, invocation);
    const build = skippableBuild(request, key);
    if (build === undefined) return;
    skippable += 1;
    if (isForced(request)) return;
    const digest = await images.find(build.places, key);
    if (digest !== undefined) found.set(target.name, { key, digest });
  };
  const asked = [...targets.values()].filter(({ isLinked }) => !isLinked);
  await forEachConcurrently(asked, maxConcurrentKeys, signal, async (target) => {
    try {
      await find(target);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof BoughError)) throw error;
      skippable += 1;
      log.warn(`target ${target.name} is built: it can't be looked for: ${error.message}`);
    }
  });
  const areForced = asked.every(({ fields }) => fields["no-cache"] === true);
  if (skippable === 0 && asked.length > 0 && !areForced)
    throw usageError(
      wording`${{ option: "skip-existing" }}: no target is pushed`,
      wording`It skips what the registries of the tags have: give ${{ option: "push" }}.`,
    );
  return found;
}

/** Returns the targets that need not be built: existing ones, and ones that were not asked for, if no target that is built needs them. */
export function skippedAmong(
  targets: ReadonlyMap<string, ResolvedTarget>,
  existing: ReadonlyMap<string, ExistingTarget>,
): Set<string> {
  const skipped = new Set<string>();
  const needed = new Set<string>();
  // Each target comes after those that it needs.
  for (const target of [...targets.values()].reverse()) {
    const isDone = existing.has(target.name) || target.isLinked;
    if (isDone && !needed.has(target.name)) skipped.add(target.name);
    else for (const name of target.needs) needed.add(name);
  }
  return skipped;
}
