import type { Clock } from "../../clock.ts";
import type { CopiedSource } from "../../store/copies.ts";
import type { Store } from "../../store/store.ts";
import { visible } from "../../visible.ts";
import { unpackedWords } from "../archives/unpacked-words.ts";
import { type Difference, findDifference } from "../cache/explain.ts";
import type { LayerCache } from "../cache/layer-cache.ts";
import type { StepInputs } from "../cache/step-inputs.ts";
import { findNearest, type StepMemory } from "../cache/step-memory.ts";
import { readInputs, readSources } from "./received-values.ts";
import type { Entry, ScopeIndex, SectionName } from "./scope-index.ts";
import { type UsedEntries, withoutSecrets } from "./used-entries.ts";

/** A scope that a build reads. */
export interface FoundScope {
  name: string;
  index: ScopeIndex;
}

/**
 * Returns a store that asks this machine's store first, then the scopes in order, for what COPYs between images have found.
 * Answers from a scope are stored here, too. All are noted for the scope that the build writes.
 */
export function shareStore(
  store: Store,
  scopes: readonly FoundScope[],
  used: UsedEntries | undefined,
): Store {
  const { copyLayers, copies } = store;
  const shared = <Name extends SectionName>(section: Name, key: string) =>
    findShared(scopes, section, key)?.entry;
  return {
    ...store,

    copyLayers: {
      get(session, hash) {
        const local = copyLayers.get(session, hash);
        return local ?? shared("copies", hash)?.layer;
      },
      latest(session, place) {
        const local = copyLayers.latest(session, place);
        return local ?? latestCopy(scopes, place);
      },
      set(session, copy) {
        copyLayers.set(session, copy);
        const { hash, ...entry } = copy;
        used?.note("copies", hash, entry);
      },
    },

    copies: {
      ...copies,
      get(image, words) {
        const local = copies.get(image, words);
        const sources =
          local ??
          (isShared(words) ? readSources(shared("contents", `${image}\n${words}`)?.sources) : undefined);
        if (local === undefined && sources !== undefined) copies.set(image, words, sources);
        if (sources !== undefined) noteSources(image, words, sources, used);
        return sources;
      },
      set(image, words, sources) {
        copies.set(image, words, sources);
        noteSources(image, words, sources, used);
      },
    },
  };
}

interface SharedLayersOptions {
  scopes: readonly FoundScope[];
  used: UsedEntries | undefined;
  /** Receives the images that the service has lost. */
  gone: Set<string>;
  /** Receives the images that the build starts from. */
  bases: Set<string>;
  clock: Pick<Clock, "now">;
}

/** Finds layers of this machine first, then those of scopes. A scope's layer becomes a branch of the session when found. */
export function shareLayers(
  local: LayerCache,
  { scopes, used, gone, bases, clock }: SharedLayersOptions,
): LayerCache {
  return {
    ...local,
    hasOthers: scopes.some(({ index }) => index.layers.size > 0),

    find(hash, parent) {
      const known = local.find(hash, parent);
      if (known !== undefined) {
        if (known.operation === null) bases.add(known.image);
        used?.noteLayer(hash);
        return known;
      }
      const found = findShared(scopes, "layers", hash, ({ image }) => !gone.has(image));
      if (found === undefined) return undefined;
      const { image, title, operation, madeAt, bytes, seconds, by } = found.entry;
      const kind = title.startsWith("(") ? "commit" : "run";
      // Anyone who can write to the scope may have written the title.
      const layer = { hash, image, parent, kind, title: visible(title) } as const;
      const made = local.put({ ...layer, operation: operation ?? undefined });
      used?.note("layers", hash, { image, title, operation, madeAt, bytes, seconds, by });
      const ageSeconds = Math.max(0, (clock.now() - madeAt) / 1000);
      return { ...made, cached: true, from: { scope: found.scope, ageSeconds } };
    },

    put(layer) {
      if (layer.kind === "from") bases.add(layer.image);
      used?.noteLayer(layer.hash, layer);
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
      const now = withoutSecrets(step.inputs());
      for (const { name, index } of scopes) {
        const entries = Array.from(index.steps)
          .filter(([key]) => key.startsWith(`${dockerfile}\n`))
          .map(([, entry]) => entry);
        const nearest = findNearest(entries, { ordinal: step.ordinal, title: now.title }, titles);
        const difference = nearest && nearest.hash !== hash && differenceOf(nearest, now);
        if (difference) return { scope: name, difference };
      }
      return undefined;
    },

    needsInputs: (step, hash) => used !== undefined || local.needsInputs(step, hash),

    async remember(step, hash) {
      await local.remember(step, hash);
      used?.noteStep(step, hash);
    },
  };
}

/** If all shared inputs of a step are equal but its hash is not, a secret has changed. */
function differenceOf({ inputs }: Entry<"steps">, now: StepInputs): Difference | undefined {
  const before = readInputs(inputs);
  return before && (findDifference(before, now) ?? { reason: "command" });
}

function findShared<Name extends SectionName>(
  scopes: readonly FoundScope[],
  section: Name,
  key: string,
  isWanted: (entry: Entry<Name>) => boolean = () => true,
): { scope: string; entry: Entry<Name> } | undefined {
  for (const { name, index } of scopes) {
    const entry = index[section].get(key);
    if (entry !== undefined && isWanted(entry)) return { scope: name, entry };
  }
  return undefined;
}

function latestCopy(scopes: readonly FoundScope[], place: string): Entry<"copies"> | undefined {
  let latest: Entry<"copies"> | undefined;
  for (const { index } of scopes) {
    for (const entry of index.copies.values())
      if (entry.place === place && entry.usedAt > (latest?.usedAt ?? -1)) latest = entry;
    if (latest !== undefined) return latest;
  }
  return undefined;
}

/** Returns false for what ADD has unpacked: on another machine, its contents may not have been sent. */
function isShared(words: string): boolean {
  return !words.startsWith(unpackedWords);
}

/** The entries of larger copies are not shared: another machine can read them from the image. */
const maxContentCharacters = 256 * 1024;

function noteSources(
  image: string,
  words: string,
  copied: readonly CopiedSource[],
  used: UsedEntries | undefined,
): void {
  if (used === undefined || !isShared(words)) return;
  const sources = JSON.stringify(copied);
  if (sources.length <= maxContentCharacters) used.note("contents", `${image}\n${words}`, { sources });
}
