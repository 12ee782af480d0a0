import type { FileState } from "../../src/store/file-table.ts";

/** The state of a file, with numbers as large as they get in practice. */
export const state: FileState = {
  device: 64_769,
  inode: 2 ** 52 + 5,
  size: 4096,
  mtimeMs: 1_763_683_200_123.25,
  ctimeMs: 1_763_683_200_123.5,
};
