import { type BuildKey, createKeyFinder } from "../../builds/keys/build-key.ts";
import type { BuildsTogether } from "../../builds/prepare-build.ts";
import type { Connections } from "../../service/connections.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { withTarget } from "../target-error.ts";
import { buildOf } from "../target-request.ts";

/** The maximum number of targets whose keys are found at the same time. */
export const maxConcurrentKeys = 16;

/** The content keys of the targets of a bake. */
export interface TargetKeys {
  /** Returns the key of a target, which is computed once. */
  keyOf(target: ResolvedTarget): Promise<BuildKey>;
  /** Computes the key again, as files may have changed since. */
  findAgain(target: ResolvedTarget): Promise<BuildKey>;
  /** Stores the hashes of files for the next command. */
  save(): void;
}

export function createTargetKeys(
  targets: ReadonlyMap<string, ResolvedTarget>,
  { connectTo }: Pick<Connections, "connectTo">,
  invocation: BakeInvocation,
  tables?: BuildsTogether["tables"],
): TargetKeys {
  const finder = createKeyFinder(invocation.runtime.signal, tables);
  /** Ids in the place of the targets' images, which are not built to compute a key. */
  const standIns = new Map<string, string>();
  const standIn = (name: string) => standIns.getOrInsertComputed(name, () => crypto.randomUUID());
  const found = new Map<string, Promise<BuildKey>>();
  const needed = new Set(targets.values().flatMap(({ needs }) => needs));
  // The layers of thousands of targets would fill the memory.
  const isReused = ({ name }: ResolvedTarget) =>
    needed.has(name) || invocation.options["drop-pushed"] === true;

  async function find(target: ResolvedTarget): Promise<BuildKey> {
    const linked = new Map<string, BuildKey>();
    for (const name of target.needs) {
      const needed = targets.get(name);
      if (needed !== undefined) linked.set(standIn(name), await keys.keyOf(needed));
    }
    try {
      const own = buildOf(target, (name) => ({ image: standIn(name) }), invocation, { asPushed: true });
      const key = await finder.find(own, { connectTo, linked });
      return isReused(target) ? key : { ...key, platforms: [] };
    } catch (error) {
      throw withTarget(error, target);
    }
  }

  const keys: TargetKeys = {
    save: finder.save,
    keyOf: (target) => found.getOrInsertComputed(target.name, () => find(target)),
    findAgain(target) {
      const again = find(target);
      found.set(target.name, again);
      return again;
    },
  };
  return keys;
}
