import type { CopiedSource } from "../../store/copies.ts";
import type { Store } from "../../store/store.ts";
import { unpackedWords } from "../archives/read-archive.ts";
import { distrustOf, formatOrigin, type LayerOrigin, parseOrigin } from "../state/layer-origin.ts";
import { readSources } from "./received-values.ts";
import { factKey } from "./registry/bound-index.ts";
import type { ScopeEntry, SectionName } from "./scope-index.ts";
import type { FoundScope } from "./shared-cache.ts";
import type { UsedEntries } from "./used-entries.ts";

interface SharedStoreOptions {
  scopes: readonly FoundScope[];
  used: UsedEntries | undefined;
  /** Fingerprints of the keys that must have signed entries from elsewhere; `undefined` if all are trusted. */
  trusted: ReadonlySet<string> | undefined;
}

/**
 * Returns a store that looks in this machine's store first, then in the scopes, in order, for the results of COPYs between images. All
 * results are added to the scope that the build writes.
 */
export function shareStore(store: Store, { scopes, used, trusted }: SharedStoreOptions): Store {
  const { copyLayers, copies, imageMetadata } = store;
  function ofThisMachine<Copy extends { origin: string | null }>(copy: Copy | undefined): Copy | undefined {
    return copy && distrustOf(parseOrigin(copy.origin), trusted) === undefined ? copy : undefined;
  }

  return {
    ...store,

    imageMetadata: {
      ...imageMetadata,
      get(image, question) {
        const answer = imageMetadata.get(image, question) ?? findFact(scopes, image, question);
        if (answer !== undefined) addFact(image, question, answer, used);
        return answer;
      },
      set(image, question, answer) {
        imageMetadata.set(image, question, answer);
        addFact(image, question, answer, used);
      },
    },

    copyLayers: {
      get(session, hash) {
        const local = ofThisMachine(copyLayers.get(session, hash));
        return local ?? fromScope(findShared(scopes, "copies", hash));
      },
      latest(session, place) {
        const local = ofThisMachine(copyLayers.latest(session, place));
        return local ?? fromScope(latestCopy(scopes, place));
      },
      set(session, copy) {
        copyLayers.set(session, copy);
        const { hash, origin: _, ...entry } = copy;
        used?.add("copies", hash, entry);
      },
    },

    copies: {
      ...copies,
      get(image, words) {
        // A scope's entry is not stored here: a later build may trust other keys.
        const sources =
          copies.get(image, words) ??
          (isShared(words)
            ? readSources(findShared(scopes, "contents", `${image}\n${words}`)?.entry.sources)
            : undefined);
        if (sources !== undefined) addSources(image, words, sources, used);
        return sources;
      },
      set(image, words, sources) {
        copies.set(image, words, sources);
        addSources(image, words, sources, used);
      },
    },
  };

  function fromScope(found: SharedEntry<"copies"> | undefined) {
    return found && { ...found.entry, origin: formatOrigin(found.origin) };
  }
}

/** An entry of a scope, with its origin. */
interface SharedEntry<Name extends SectionName> {
  entry: ScopeEntry<Name>;
  origin: LayerOrigin;
}

function findShared<Name extends SectionName>(
  scopes: readonly FoundScope[],
  section: Name,
  key: string,
): SharedEntry<Name> | undefined {
  for (const { index, origin } of scopes) {
    const entry = index[section].get(key);
    if (entry !== undefined) return { entry, origin };
  }
  return undefined;
}

/** The keys of facts about an image's files. Other facts are about this machine, or about the service. */
const fileFactKeys = /^(?:directory|file|type|link|text|digest) /;
/** The maximum length of a fact that is shared. */
const maxFactCharacters = 64 * 1024;

/** Finds a fact in caches that identify images by their contents. */
function findFact(scopes: readonly FoundScope[], image: string, question: string): string | undefined {
  if (!fileFactKeys.test(question)) return undefined;
  for (const { index, chainOf } of scopes) {
    const chain = chainOf?.(image) ?? index.images.get(image)?.chain;
    const answer = chain && index.facts.get(factKey(chain, question))?.answer;
    if (answer) return answer;
  }
  return undefined;
}

function addFact(image: string, question: string, answer: string, used: UsedEntries | undefined): void {
  if (!fileFactKeys.test(question) || answer.length > maxFactCharacters) return;
  used?.add("facts", factKey(image, question), { answer });
}

function latestCopy(scopes: readonly FoundScope[], place: string): SharedEntry<"copies"> | undefined {
  for (const { index, origin } of scopes) {
    let latest: ScopeEntry<"copies"> | undefined;
    for (const entry of index.copies.values())
      if (entry.place === place && entry.usedAt > (latest?.usedAt ?? -1)) latest = entry;
    if (latest !== undefined) return { entry: latest, origin };
  }
  return undefined;
}

/** Returns false for what ADD has unpacked: on another machine, its contents may not have been sent. */
function isShared(words: string): boolean {
  return !words.startsWith(unpackedWords);
}

/** The entries of larger copies are not shared: another machine can read them from the image. */
const maxContentCharacters = 256 * 1024;

function addSources(
  image: string,
  words: string,
  copied: readonly CopiedSource[],
  used: UsedEntries | undefined,
): void {
  if (used === undefined || !isShared(words)) return;
  const sources = JSON.stringify(copied);
  if (sources.length <= maxContentCharacters) used.add("contents", `${image}\n${words}`, { sources });
}
