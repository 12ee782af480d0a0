import type { CachePlace, FoundIndex, IndexPart, UsedPart } from "./cache-place.ts";
import {
  type DecodedIndex,
  decodeIndex,
  decodeSteps,
  UnusableIndexError,
  type Verify,
} from "./index-file.ts";
import { emptyIndex, mergeIndexes, type ScopeIndex } from "./scope-index.ts";

/** Reads a cache. Each part is read and decoded once. */
export interface IndexReader {
  /** Unless the cache is being written just now, this takes one lookup and, the first time, one download. */
  read(): Promise<FoundIndex>;
  /** Returns the same index with the inputs of steps, which take another download. */
  readSteps(found: FoundIndex): Promise<ScopeIndex>;
  /** Warns of the parts that can't be used, once of each. */
  report(found: FoundIndex): void;
  /** Adds a part that was just put, so that it need not be read. */
  add(part: IndexPart, decoded: DecodedIndex, index: Uint8Array): FoundIndex;
}

interface ReadOptions {
  /** `undefined`: an index needs no signature. */
  verify?: Verify | undefined;
  warn(text: string): void;
}

export function createIndexReader(place: CachePlace, { verify, warn }: ReadOptions): IndexReader {
  const known = new Map<string, DecodedIndex | UnusableIndexError>();
  const reported = new Set<string>();

  async function readPart(part: IndexPart): Promise<DecodedIndex | UnusableIndexError> {
    const before = known.get(part.id);
    if (before !== undefined) return before;
    const found = part.problem ?? (await decode(part).catch(asUnusable));
    known.set(part.id, found);
    return found;
  }

  async function decode(part: IndexPart): Promise<DecodedIndex> {
    const copy = place.copies?.get(part.id);
    const bytes = copy ?? (await place.get(part, "index"));
    if (bytes === undefined) throw new UnusableIndexError("its image has no index, or no longer exists");
    const decoded = decodeIndex(bytes, place.name, verify);
    if (copy === undefined) place.copies?.set(place.name, part.id, bytes);
    return decoded;
  }

  return {
    async read() {
      const parts = await place.list();
      const merged = new Set<string>();
      const used: UsedPart[] = [];
      const failures: FoundIndex["failures"][number][] = [];
      for (const part of parts) {
        if (merged.has(part.id)) continue;
        const decoded = await readPart(part);
        if (decoded instanceof UnusableIndexError) {
          failures.push({ part, error: decoded });
          continue;
        }
        for (const id of [part.id, ...decoded.header.merged]) merged.add(id);
        used.push({ part, decoded });
      }
      return joinParts({ parts, used, failures, merged });
    },

    async readSteps({ used }) {
      for (const { part, decoded } of used) {
        if (decoded.hasSteps) continue;
        // Damaged inputs are left out: no layer depends on them.
        const steps = await place.get(part, "steps").catch(asUnusable);
        if (steps !== undefined && !(steps instanceof UnusableIndexError)) decodeSteps(steps, decoded);
      }
      return mergeAll(used);
    },

    report({ failures }) {
      for (const { part, error } of failures) {
        if (reported.has(part.id)) continue;
        reported.add(part.id);
        warn(`cache: ${part.label} is not used: ${error.message}`);
      }
    },

    add(part, decoded, index) {
      known.set(part.id, decoded);
      place.copies?.set(place.name, part.id, index);
      const merged = new Set([part.id, ...decoded.header.merged]);
      return joinParts({ parts: [part], used: [{ part, decoded }], failures: [], merged });
    },
  };
}

function joinParts(found: Pick<FoundIndex, "parts" | "used" | "failures" | "merged">): FoundIndex {
  const { used } = found;
  const [newest] = used
    .map(({ decoded: { header } }) => ({ at: header.at, by: header.by }))
    .sort((one, other) => other.at - one.at);
  return {
    ...found,
    index: mergeAll(used),
    kept: new Set(used.flatMap(({ part }) => [...part.kept])),
    isWhole: used.length === 0 || (used.length === 1 && used[0]?.part.isMain === true),
    isSigned: used.some(({ decoded }) => decoded.isSigned),
    keys: new Set(used.map(({ decoded }) => decoded.verifiedKey ?? null)),
    written: newest,
  };
}

function mergeAll([first, ...others]: readonly UsedPart[]): ScopeIndex {
  const start = first?.decoded.index ?? emptyIndex();
  return others.reduce((index, { decoded }) => mergeIndexes(index, decoded.index), start);
}

function asUnusable(error: unknown): UnusableIndexError {
  if (error instanceof UnusableIndexError) return error;
  throw error;
}
