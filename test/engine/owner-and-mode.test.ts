/** New files get the owner and mode that they should have, whatever they were created with. */
import { expect, test } from "bun:test";
import { chmodSync, chownSync, closeSync, openSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { firstMode, setOwnerAndMode } from "../../src/engine/system/owner-and-mode.ts";
import { temporaryDirectory } from "../support/bough.ts";

test.each([
  ["as it is created", { uid: 0, gid: 0, mode: 0o644 }],
  ["with bits that the umask clears", { uid: 0, gid: 0, mode: 0o666 }],
  ["with setuid and the sticky bit", { uid: 0, gid: 0, mode: 0o5755 }],
  ["of another user", { uid: 5, gid: 0, mode: 0o600 }],
  ["of another group, with setuid and setgid", { uid: 0, gid: 6, mode: 0o6711 }],
  ["that nobody may read or write", { uid: 7, gid: 8, mode: 0 }],
])("a file %s", (_, attributes) => {
  for (const [group, directoryMode] of [
    [0, 0o755],
    // Files in it get its group.
    [9, 0o2755],
  ] as const) {
    const directory = temporaryDirectory();
    chownSync(directory, 0, group);
    chmodSync(directory, directoryMode);
    const path = join(directory, "file");
    const descriptor = openSync(path, "wx", firstMode(attributes.mode));
    // Another user may never do more than at the end.
    expect(statSync(path).mode & 0o7777 & ~attributes.mode).toBe(0);
    writeSync(descriptor, "x");
    setOwnerAndMode(descriptor, attributes);
    closeSync(descriptor);
    const { uid, gid, mode } = statSync(path);
    expect({ uid, gid, mode: mode & 0o7777 }).toEqual(attributes);
  }
});
