/** Counts the sizes of one import's layers against the limits, in several threads. */
import type { TarEntry } from "../../image/tar-reader.ts";
import { checkRoom, type Room } from "../import-limits.ts";

export type Account = ReturnType<typeof createAccount>;

/** Adds a layer's size, while it is unpacked, to the image's totals. Throws if they exceed the limits or the free space. */
export function createAccount(room: Room, totals: Totals) {
  let length = 0;
  let unpacked = 0;
  let counted = 0;
  let implied = 0;
  /** Counts the larger of the archive and its files: sparse files may be larger than the archive. */
  const update = () => {
    const bytes = Math.max(length, unpacked);
    totals.add({ bytes: bytes - counted });
    counted = bytes;
    checkRoom(room, totals.read());
  };
  return {
    addContent(bytes: number) {
      length += bytes;
      update();
    },
    addWritten(bytes: number) {
      totals.add({ written: bytes });
      checkRoom(room, totals.read());
    },
    addEntry({ size }: TarEntry, allImplied: number) {
      unpacked += size;
      totals.add({ entries: 1 + Math.max(0, allImplied - implied) });
      implied = Math.max(implied, allImplied);
      update();
    },
  };
}

/** The totals of one import's layers so far, counted by several threads. */
export interface Totals {
  /** Throws if the import has ended meanwhile. */
  add(more: { bytes?: number; entries?: number; written?: number }): void;
  read(): { bytes: number; entries: number; written: number };
}

const cells = { bytes: 0, entries: 1, written: 2, isOver: 3 } as const;

/** Makes shared memory for `openTotals`, which works in any thread. */
export function makeTotals(): SharedArrayBuffer {
  return new SharedArrayBuffer(Object.keys(cells).length * BigInt64Array.BYTES_PER_ELEMENT);
}

export function openTotals(memory: SharedArrayBuffer): Totals {
  const counts = new BigInt64Array(memory);
  const read = (cell: number) => Number(Atomics.load(counts, cell));
  return {
    add({ bytes = 0, entries = 0, written = 0 }) {
      if (read(cells.isOver) !== 0) throw new Error("the import is over");
      if (bytes !== 0) Atomics.add(counts, cells.bytes, BigInt(bytes));
      if (entries !== 0) Atomics.add(counts, cells.entries, BigInt(entries));
      if (written !== 0) Atomics.add(counts, cells.written, BigInt(written));
    },
    read: () => ({
      bytes: read(cells.bytes),
      entries: read(cells.entries),
      written: read(cells.written),
    }),
  };
}

/** Stops all threads that count: their next `add` throws. */
export function endTotals(memory: SharedArrayBuffer): void {
  Atomics.store(new BigInt64Array(memory), cells.isOver, 1n);
}
