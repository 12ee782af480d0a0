/** Finds files that are the same in several layers, by a table of hashes without paths or contents. */

/** A file of a layer, identified by a hash of its path, size and content. */
export interface HashedFile {
  high: number;
  low: number;
  size: number;
}

/** Files that are in exactly these layers. */
export interface SharedFiles {
  /** The number of the set of layers. */
  set: number;
  /** The layers in ascending order. */
  layers: readonly number[];
  files: number;
  /** The size of one copy. */
  bytes: number;
}

export interface FileTable {
  /** Adds the files of a layer, whose number is higher than those of all layers before. */
  add(layer: number, files: Iterable<HashedFile>): void;
  /** Returns the number of the set of layers that have a file. */
  setOf(file: Pick<HashedFile, "high" | "low">): number;
  /** True if only the layer that was added last has a file. */
  isNew(file: Pick<HashedFile, "high" | "low">): boolean;
  /** Returns the files that are in more than one layer. */
  shared(): SharedFiles[];
}

/**
 * Creates a table in which two million files take about 50 MB: a slot has a hash and the number of the set of layers that have the file.
 * There are few such sets, however many layers there are.
 */
export function createFileTable(): FileTable {
  const sets = createLayerSets();
  let slots = createSlots(1 << 12);
  let used = 0;

  function slotOf(high: number, low: number): number {
    const mask = slots.size - 1;
    let at = (high ^ low) & mask;
    while (slots.set[at] !== 0 && (slots.high[at] !== high || slots.low[at] !== low)) at = (at + 1) & mask;
    return at;
  }

  function grow(): void {
    const old = slots;
    slots = createSlots(old.size * 2);
    for (let at = 0; at < old.size; at += 1) {
      const set = old.set[at] ?? 0;
      const [high = 0, low = 0] = [old.high[at], old.low[at]];
      if (set !== 0) put(slotOf(high, low), { high, low, set });
    }
  }

  function put(at: number, { high, low, set }: { high: number; low: number; set: number }): void {
    slots.high[at] = high;
    slots.low[at] = low;
    slots.set[at] = set;
  }

  function setOf({ high, low }: Pick<HashedFile, "high" | "low">): number {
    return slots.set[slotOf(high, low)] ?? 0;
  }

  return {
    add(layer, files) {
      for (const { high, low, size } of files) {
        if (used * 2 >= slots.size) grow();
        const at = slotOf(high, low);
        const before = slots.set[at] ?? 0;
        if (before === 0) used += 1;
        put(at, { high, low, set: sets.move(before, layer, size) });
      }
    },
    setOf,
    isNew: (file) => sets.hasOneLayer(setOf(file)),
    shared: sets.shared,
  };
}

interface Slots {
  size: number;
  high: Uint32Array;
  low: Uint32Array;
  /** 0 for an empty slot. */
  set: Uint32Array;
}

function createSlots(size: number): Slots {
  return { size, high: new Uint32Array(size), low: new Uint32Array(size), set: new Uint32Array(size) };
}

/** Creates the sets of layers. A set is a smaller set and its last layer, and counts the files that are in exactly its layers. Set 0 is empty. */
function createLayerSets() {
  const sets: { smaller: number; layer: number; files: number; bytes: number }[] = [
    { smaller: 0, layer: -1, files: 0, bytes: 0 },
  ];
  /** The next larger sets, by the numbers of a set and of the added layer. */
  const larger = new Map<number, Map<number, number>>();

  function layersOf(set: number): number[] {
    const layers: number[] = [];
    for (let each = sets[set]; each !== undefined && each.layer >= 0; each = sets[each.smaller])
      layers.push(each.layer);
    return layers.reverse();
  }

  return {
    hasOneLayer: (set: number) => sets[set]?.smaller === 0,
    /** Moves a file from a set to the one that has this layer as well, and returns the number of that set. */
    move(from: number, layer: number, size: number): number {
      const before = sets[from];
      if (before === undefined || before.layer === layer) return from;
      const byLayer = larger.get(from) ?? new Map<number, number>();
      if (byLayer.size === 0) larger.set(from, byLayer);
      const to = byLayer.get(layer) ?? sets.length;
      const after = sets[to] ?? { smaller: from, layer, files: 0, bytes: 0 };
      sets[to] = after;
      byLayer.set(layer, to);
      if (from !== 0) {
        before.files -= 1;
        before.bytes -= size;
      }
      after.files += 1;
      after.bytes += size;
      return to;
    },
    /** Returns the sets of more than one layer that have files. */
    shared: (): SharedFiles[] =>
      sets.flatMap(({ smaller, files, bytes }, set) =>
        smaller === 0 || files === 0 ? [] : [{ set, layers: layersOf(set), files, bytes }],
      ),
  };
}
