/**
 * An immutable map. A changed version costs about as much as the change, however large the map is, and the old version stays
 * valid. Keys may be paths, with `/` between names. Keys keep their order, as in a plain map.
 *
 * It is a stack of maps, larger ones below. A new map merges those above the first with a higher rank than its own, and ranks are
 * random as in a skip list. So, whatever the order of changes or versions, the stack's depth and the cost of merging are
 * logarithmic in the size on average.
 */
export class PersistentMap<Value extends NonNullable<unknown>> implements ReadonlyMap<string, Value> {
  readonly size: number;
  #top: Layer<Value> | undefined;

  private constructor(size: number, top: Layer<Value> | undefined) {
    this.size = size;
    this.#top = top;
  }

  /** Returns the map itself if it is a PersistentMap, else one of the same entries. `map` must not be changed afterwards. */
  static of<Value extends NonNullable<unknown>>(map: ReadonlyMap<string, Value>): PersistentMap<Value> {
    if (map instanceof PersistentMap) return map;
    // With an empty layer below it, a large map would be copied.
    return new PersistentMap(map.size, map.size === 0 ? undefined : layerOf(map, undefined));
  }

  /** Returns a map with `additions`, which replace values of the same keys and must not be changed afterwards. */
  with(additions: ReadonlyMap<string, Value>): PersistentMap<Value> {
    if (additions.size === 0) return this;
    let { size } = this;
    if (size === 0) size = additions.size;
    else for (const key of additions.keys()) if (!this.has(key)) size++;
    return new PersistentMap(size, layerOf(additions, this.#top));
  }

  /** Returns a map without some keys. Takes time linear in the map's size. */
  without(isRemoved: (key: string) => boolean): PersistentMap<Value> {
    const rest = new Map<string, Value>();
    for (const [key, value] of this) if (!isRemoved(key)) rest.set(key, value);
    return PersistentMap.of(rest);
  }

  get(key: string): Value | undefined {
    for (let layer = this.#top; layer !== undefined; layer = layer.below) {
      const value = layer.entries.get(key);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  /** Returns true if a key is a path below `path`. */
  hasBelow(path: string): boolean {
    for (let layer = this.#top; layer !== undefined; layer = layer.below) {
      layer.directories ??= directoriesOf(layer.entries);
      if (layer.directories.has(path)) return true;
    }
    return false;
  }

  keys(): MapIterator<string> {
    return this.#flat().keys();
  }

  values(): MapIterator<Value> {
    return this.#flat().values();
  }

  entries(): MapIterator<[string, Value]> {
    return this.#flat().entries();
  }

  [Symbol.iterator](): MapIterator<[string, Value]> {
    return this.entries();
  }

  forEach(action: (value: Value, key: string, map: ReadonlyMap<string, Value>) => void): void {
    this.#flat().forEach(action);
  }

  /** Merges all layers into one, on which later versions are based, too. */
  #flat(): ReadonlyMap<string, Value> {
    const top = this.#top;
    if (top === undefined) return new Map();
    if (top.below === undefined) return top.entries;
    const entries = merge(top, undefined);
    this.#top = { rank: rankOf(entries.size), entries, below: undefined };
    return entries;
  }
}

/** Returns `map` with `additions`, which replace values of the same keys. */
export function extend<Value extends NonNullable<unknown>>(
  map: ReadonlyMap<string, Value>,
  additions: Iterable<readonly [string, Value]>,
): PersistentMap<Value> {
  return PersistentMap.of(map).with(new Map(additions));
}

interface Layer<Value> {
  rank: number;
  entries: ReadonlyMap<string, Value>;
  /** All directories that contain an entry of this layer; computed on first use. */
  directories?: ReadonlySet<string>;
  below: Layer<Value> | undefined;
}

function layerOf<Value>(entries: ReadonlyMap<string, Value>, below: Layer<Value> | undefined): Layer<Value> {
  // A random rank of n is half as likely as one of n - 1. A larger map has at least the rank of its size.
  const rank = Math.max(rankOf(entries.size), Math.clz32(Math.random() * 2 ** 32));
  let rest = below;
  while (rest !== undefined && rest.rank <= rank) rest = rest.below;
  const layer = { rank, entries, below };
  return rest === below ? layer : { rank, entries: merge(layer, rest), below: rest };
}

function rankOf(size: number): number {
  return 32 - Math.clz32(size);
}

/** Merges the entries of the layers from `top` down to above `end`. */
function merge<Value>(top: Layer<Value>, end: Layer<Value> | undefined): ReadonlyMap<string, Value> {
  const stack: ReadonlyMap<string, Value>[] = [];
  for (let layer: Layer<Value> | undefined = top; layer !== undefined && layer !== end; layer = layer.below)
    stack.push(layer.entries);
  const merged = new Map(stack.pop());
  for (const entries of stack.reverse()) for (const [key, value] of entries) merged.set(key, value);
  return merged;
}

function directoriesOf(entries: ReadonlyMap<string, unknown>): ReadonlySet<string> {
  const directories = new Set<string>();
  for (const path of entries.keys()) {
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
      const directory = path.slice(0, end);
      // Its parents are in the set, too.
      if (directories.has(directory)) break;
      directories.add(directory);
    }
  }
  return directories;
}
