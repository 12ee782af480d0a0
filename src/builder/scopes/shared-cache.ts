import type { Clock } from "../../clock.ts";
import type { CopiedSource } from "../../store/copies.ts";
import type { Store } from "../../store/store.ts";
import { visible } from "../../visible.ts";
import { unpackedWords } from "../archives/read-archive.ts";
import type { LayerCache } from "../cache/layer-cache.ts";
import { type Difference, findDifference, type StepInputs } from "../cache/step-inputs.ts";
import { findNearest, type StepMemory } from "../cache/step-memory.ts";
import { readInputs, readSources } from "./received-values.ts";
import { factKey } from "./registry/bound-index.ts";
import type { Entry, ScopeIndex, SectionName } from "./scope-index.ts";
import { type UsedEntries, withoutSecrets } from "./used-entries.ts";

/** A scope that a build reads. */
export interface FoundScope {
  name: string;
  index: ScopeIndex;
  /** Set if the index names images by their contents: returns the service's UUID; `undefined` if it can't have the image. */
  imageOf?(image: string): Promise<string | undefined>;
  /** Returns the ChainID that such an index has facts by; `undefined` if it is not known what the image is made of. */
  chainOf?(image: string): string | null | undefined;
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
  const { copyLayers, copies, facts } = store;
  const shared = <Name extends SectionName>(section: Name, key: string) => findShared(scopes, section, key);
  return {
    ...store,

    facts: {
      ...facts,
      get(image, question) {
        const answer = facts.get(image, question) ?? findFact(scopes, image, question);
        if (answer !== undefined) noteFact(image, question, answer, used);
        return answer;
      },
      set(image, question, answer) {
        facts.set(image, question, answer);
        noteFact(image, question, answer, used);
      },
    },

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
  /** Called with each image that the build makes. */
  onMade?: ((image: string) => void) | undefined;
}

/** Finds layers of this machine first, then those of scopes. A scope's layer becomes a branch of the session when found. */
export function shareLayers(
  local: LayerCache,
  { scopes, used, gone, bases, clock, onMade }: SharedLayersOptions,
): LayerCache {
  async function findOther(hash: string) {
    for (const { name, index, imageOf } of scopes) {
      const entry = index.layers.get(hash);
      if (entry === undefined) continue;
      const image = imageOf === undefined ? entry.image : await imageOf(entry.image);
      if (image !== undefined && !gone.has(image)) return { scope: name, entry: { ...entry, image } };
    }
    return undefined;
  }

  function findLocal(hash: string) {
    const known = local.findLocal(hash);
    if (known?.isBase) bases.add(known.image);
    if (known !== undefined) used?.noteLayer(hash);
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
      const made = local.put({ ...layer, operation: operation ?? undefined });
      used?.note("layers", hash, { image, title, operation, madeAt, bytes, seconds, by });
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
): Entry<Name> | undefined {
  for (const { index } of scopes) {
    const entry = index[section].get(key);
    if (entry !== undefined) return entry;
  }
  return undefined;
}

/** Answers about an image's files. Others are about this machine, or about the service. */
const questionsOfFiles = /^(?:directory|file|type|link|text|digest) /;
/** A longer answer is not shared. */
const maxAnswerCharacters = 64 * 1024;

/** Finds an answer in caches that name images by their contents. */
function findFact(scopes: readonly FoundScope[], image: string, question: string): string | undefined {
  if (!questionsOfFiles.test(question)) return undefined;
  for (const { index, chainOf } of scopes) {
    const chain = chainOf?.(image) ?? index.images.get(image)?.chain;
    const answer = chain && index.facts.get(factKey(chain, question))?.answer;
    if (answer) return answer;
  }
  return undefined;
}

function noteFact(image: string, question: string, answer: string, used: UsedEntries | undefined): void {
  if (!questionsOfFiles.test(question) || answer.length > maxAnswerCharacters) return;
  used?.note("facts", factKey(image, question), { answer });
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
