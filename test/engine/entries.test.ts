import { expect, test } from "bun:test";
import { formatEntries } from "../../src/engine/inspect/entries.ts";

const file = {
  ...{ path: "f", size: 1, owner: "root", group: 0, uid: 0, gid: 0, mode: 0o644, mtime: 0, nlink: 1 },
  ...{ is_dir: false, is_regular: true, is_symlink: false, is_socket: false, is_fifo: false, symlink_to: "" },
};

test("a list of very many entries has columns", () => {
  const list = formatEntries([...new Array(700_000).fill(file), { ...file, size: 100 }]);
  expect(list.slice(0, 42)).toBe("-rw-r--r-- 1 root 0   1 1970-01-01 00:00 f");
});

test("a time after the year 275760 is shown in seconds", () => {
  expect(formatEntries([{ ...file, mtime: 2 ** 53 }])).toBe("-rw-r--r-- 1 root 0 1 9007199254740992 f\n");
});
