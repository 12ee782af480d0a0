import type { FileColumns } from "./file-columns.ts";
import { FilePacker } from "./packed-files.ts";
import type { PendingFiles } from "./pending-files.ts";

/**
 * Packs changed files in their old places, and new ones at the end. Yields after each part. Considers only the first `count`
 * pending files: there may be more when it continues.
 */
export function* packMerged(
  before: FileColumns,
  pending: PendingFiles,
  count: number,
): Generator<undefined, Uint8Array> {
  const packer = new FilePacker();
  const isPacked = new Uint8Array(count);
  for (let row = 0; row < before.length; row++) {
    const change = pending.find(before.paths.at(row));
    const isChanged = change !== undefined && change < count;
    if (isChanged) isPacked[change] = 1;
    if (isChanged ? packer.add(pending.columns, change) : packer.add(before, row)) yield;
  }
  for (let row = 0; row < count; row++) {
    if (pending.isLatest(row) && isPacked[row] === 0 && packer.add(pending.columns, row)) yield;
  }
  return packer.end();
}

/** Packs the rows to keep. */
export function packSome(columns: FileColumns, isKept: (row: number) => boolean): Uint8Array {
  const packer = new FilePacker();
  for (let row = 0; row < columns.length; row++) if (isKept(row)) packer.add(columns, row);
  return packer.end();
}
