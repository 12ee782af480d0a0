import type { Descriptor } from "../../image/oci-layout.ts";
import type { ScopeCopies } from "../../store/store.ts";
import type { DecodedIndex, IndexFiles, UnusableIndexError } from "./index-file.ts";
import type { ScopeEntry, ScopeIndex } from "./scope-index.ts";

/** A stored index. Several writers at once may leave several, which readers merge. Its content never changes. */
export interface IndexPart {
  /** The UUID of an image, or the digest of a manifest. */
  id: string;
  /** The name that messages show. */
  label: string;
  /** True for the one that readers find first. */
  isMain: boolean;
  /** True if it stays listed after another one was put. */
  staysListed: boolean;
  /** Digests of the blobs that it keeps from garbage collections. */
  kept: ReadonlySet<string>;
  /** Why it can't be used, if its list says so. */
  problem?: UnusableIndexError | undefined;
}

/** A cache as its place has it, merged from all parts. */
export interface FoundIndex {
  /** The index without the inputs of steps; see `readSteps`. */
  index: ScopeIndex;
  /** All parts that the place lists, the main one first. */
  parts: readonly IndexPart[];
  used: readonly UsedPart[];
  failures: readonly { part: IndexPart; error: UnusableIndexError }[];
  /** The ids of parts whose entries are in the index. */
  merged: ReadonlySet<string>;
  /** Digests of the blobs that the used parts keep. */
  kept: ReadonlySet<string>;
  /** True if no other part has what the main one lacks. */
  isWhole: boolean;
  isSigned: boolean;
  /** Fingerprints of the keys that have signed its parts; null for a part whose signature was not verified. */
  keys: ReadonlySet<string | null>;
  /** The time (milliseconds since the epoch) and bough's version of the last write; `undefined` if nothing can be used. */
  written: { at: number; by: string } | undefined;
}

export interface UsedPart {
  part: IndexPart;
  decoded: DecodedIndex;
}

/**
 * The place of a cache: tagged images of a service, a registry, a directory, or GitHub's cache. A place only lists, gets and puts;
 * `read-index.ts` and `write-index.ts` do the rest, in the same way for all places.
 */
export interface CachePlace {
  /** The name that messages show. */
  readonly label: string;
  /** The name that the result of a step and its explanation show. */
  readonly title: string;
  /** The name that its index has, and that is signed with it. */
  readonly name: string;
  /** The time between two writes of a command that goes on. */
  readonly minWriteIntervalMilliseconds: number;
  /**
   * True if `put` compares what is there with what was read before. Then a writer need not look before its first attempt.
   */
  readonly comparesBeforePut: boolean;
  /** Copies that this machine keeps of indexes, by part. */
  readonly copies?: ScopeCopies | undefined;
  /** Set if the layers are stored beside the index, which then identifies images by their contents. Otherwise the service has them, by UUID. */
  readonly layers?: LayerPlace | undefined;
  /** Lists the parts, the main one first. */
  list(): Promise<IndexPart[]>;
  /** Throws an UnusableIndexError if the part is incomplete. Returns `undefined` if there is no such file. */
  get(part: IndexPart, file: keyof IndexFiles): Promise<Uint8Array | undefined>;
  /** Locks the place against other writers of this machine. Resolves to `undefined` where that is not possible. */
  lock(): Promise<Disposable | undefined>;
  /** Sets the sizes of layers that are to be added, as far as they are unknown. */
  measure?(layers: readonly ScopeEntry<"layers">[]): Promise<void>;
  /** Stores an index. Resolves to `undefined`, without a change, if another writer has been faster. */
  put(files: IndexFiles, request: PutRequest): Promise<PutIndex | undefined>;
}

interface LayerPlace {
  /** Returns the blobs that the place still has. */
  findExisting(digests: ReadonlySet<string>): Promise<ReadonlySet<string>>;
}

interface PutRequest {
  /** The index that was read before. */
  found: FoundIndex;
  /** Blobs that the index names and the place has. `kept`: the digests of blobs that the place is known to have. */
  blobs: readonly Descriptor[];
  kept: ReadonlySet<string>;
  /** True if nobody else can have written since `found` was read. */
  isLocked: boolean;
  /** Images with a shell, for a service that can't make an image without a command. */
  bases: ReadonlySet<string>;
}

export interface PutIndex {
  part: IndexPart;
  /** Resolves to false if other writers have replaced it, or have written what it lacks: another attempt is needed. */
  settle(): Promise<boolean>;
}
