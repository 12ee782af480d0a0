import type { Clock } from "../../clock.ts";
import { visible } from "../../visible.ts";
import type { LayerCache } from "../cache/layer-cache.ts";
import { type Difference, findDifference } from "../cache/step-difference.ts";
import type { StepInputs } from "../cache/step-inputs.ts";
import { findNearest, type StepMemory } from "../cache/step-memory.ts";
import { distrustOf, type LayerOrigin } from "../state/layer-origin.ts";
import { readInputs } from "./received-values.ts";
import type { ScopeEntry, ScopeIndex } from "./scope-index.ts";
import { sharedInputs, type UsedEntries } from "./used-entries.ts";

/** A scope that a build reads. */
export interface FoundScope {
  name: string;
  index: ScopeIndex;
  /** The origin of all of its entries. */
  origin: LayerOrigin;
  /** Set if the index identifies images by their contents: returns the service's UUID; `undefined` if the service can't have the image. */
  imageOf?(image: string): Promise<string | undefined>;
  /** Returns the ChainID under which such an index has facts; `undefined` if the image's layers are unknown. */
  chainOf?(image: string): string | null | undefined;
}

interface SharedLayersOptions {
  scopes: readonly FoundScope[];
  used: UsedEntries | undefined;
  /** Receives the images that the service has lost. */
  gone: Set<string>;
  /** Receives the images that the build starts from. */
  bases: Set<string>;
  clock: Pick<Clock, "now">;
  /** Fingerprints of the keys that must have signed layers from elsewhere; `undefined` if all are trusted. */
  trusted?: ReadonlySet<string> | undefined;
  /** Called with each image that the build makes. */
  onMade?: ((image: string) => void) | undefined;
  /** Called with the caches that a layer of this machine comes from, if no trusted key has signed them: it is not used. */
  onDistrusted?: ((caches: readonly string[] | "unknown") => void) | undefined;
}

/** Finds layers of this machine first, then those of scopes. A scope's layer becomes a branch of the session when found. */
export function shareLayers(
  local: LayerCache,
  { scopes, used, gone, bases, clock, trusted, onMade, onDistrusted }: SharedLayersOptions,
): LayerCache {
  async function findOther(hash: string) {
    for (const { name, index, origin, imageOf } of scopes) {
      const entry = index.layers.get(hash);
      if (entry === undefined) continue;
      const image = imageOf === undefined ? entry.image : await imageOf(entry.image);
      if (image !== undefined && !gone.has(image)) return { scope: name, origin, entry: { ...entry, image } };
    }
    return undefined;
  }

  function findLocal(hash: string) {
    const known = local.findLocal(hash);
    if (known === undefined) return undefined;
    const distrusted = distrustOf(known.origin, trusted);
    if (distrusted !== undefined) {
      onDistrusted?.(distrusted);
      return undefined;
    }
    if (known.isBase) bases.add(known.image);
    used?.addLayer(hash);
    return known;
  }

  return {
    ...local,
    findLocal,
    hasOthers: scopes.some(({ index }) => index.layers.size > 0),

    async find(hash, parent) {
      const known = findLocal(hash);
      if (known !== undefined) return known;
      const found = await findOther(hash);
      if (found === undefined) return undefined;
      const { image, title, operation, madeAt, bytes, seconds, by } = found.entry;
      const kind = title.startsWith("(") ? "commit" : "run";
      // Anyone who can write to the scope may have written the title.
      const layer = { hash, image, parent, kind, title: visible(title) } as const;
      const made = local.put({ ...layer, operation: operation ?? undefined, origin: found.origin });
      used?.add("layers", hash, { image, title, operation, madeAt, bytes, seconds, by });
      const ageSeconds = Math.max(0, (clock.now() - madeAt) / 1000);
      return { ...made, cached: true, from: { scope: found.scope, ageSeconds } };
    },

    async imageOf(image) {
      for (const { index, imageOf } of scopes) {
        const found = index.images.has(image) ? await imageOf?.(image) : undefined;
        if (found !== undefined) return found;
      }
      return image;
    },

    put(layer) {
      if (layer.kind === "from") bases.add(layer.image);
      else onMade?.(layer.image);
      used?.addLayer(layer.hash, layer);
      return local.put(layer);
    },

    forget(lost) {
      gone.add(lost.image);
      local.forget(lost);
    },
  };
}

interface SharedStepsOptions {
  scopes: readonly FoundScope[];
  used: UsedEntries | undefined;
  dockerfile: string;
}

export function shareSteps(local: StepMemory, { scopes, used, dockerfile }: SharedStepsOptions): StepMemory {
  return {
    ...local,

    compareShared(step, hash, titles) {
      const now = sharedInputs(step);
      for (const { name, index } of scopes) {
        const entries = Array.from(index.steps)
          .filter(([key]) => key.startsWith(`${dockerfile}\n`))
          .map(([, entry]) => entry);
        const nearest = findNearest(entries, step, titles);
        const difference = nearest && nearest.hash !== hash && differenceOf(nearest, now);
        if (difference) return { scope: name, difference };
      }
      return undefined;
    },

    needsInputs: (step, hash) => used !== undefined || local.needsInputs(step, hash),

    async remember(step, hash, signal) {
      await local.remember(step, hash, signal);
      used?.addStep(step, hash);
    },
  };
}

/** If all shared inputs of a step are equal but its hash is not, a secret has changed. */
function differenceOf({ inputs }: ScopeEntry<"steps">, now: StepInputs): Difference | undefined {
  const before = readInputs(inputs);
  return before && (findDifference(before, now) ?? { reason: "command" });
}
