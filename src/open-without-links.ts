/**
 * Opens files and directories at paths that have no symbolic link in them. Another process may put one in at any time, for
 * example in place of a directory of a build context. So the check is made of what is open, not of the path before.
 *
 * Linux shows the path of an open directory in /proc, without which Bun does not start. macOS refuses links itself; there, only
 * the contents of files are protected, not the names in a directory and the targets of links. Windows: neither.
 */
import { closeSync, constants, openSync, readlinkSync } from "node:fs";
import { openForReading } from "./open-for-reading.ts";
import { errorCode } from "./system-error.ts";

const isLinux = process.platform === "linux";
/** Non-blocking, because the name may be a pipe by now. macOS: O_NOFOLLOW_ANY, which covers the whole path. */
const fileFlags = constants.O_NONBLOCK | (process.platform === "darwin" ? 0x20000000 : constants.O_NOFOLLOW);
/** O_PATH, which Node does not define: a directory that may be entered need not be readable. */
const directoryFlags = 0o10000000 | constants.O_DIRECTORY;

/** Opens files of one directory after the other. The last directory stays open. */
export class LinkFreeOpener implements Disposable {
  #directory: { path: string; descriptor: number } | undefined;

  /** Opens a file for reading, as `openForReading` does. Throws ELOOP if there is a link in its path. */
  open(path: string): number {
    if (!isLinux) return openForReading(path, fileFlags);
    const { directory, name } = split(path);
    if (this.#directory?.path !== directory) {
      this[Symbol.dispose]();
      this.#directory = { path: directory, descriptor: openDirectory(directory) };
    }
    return openForReading(`${descriptorPath(this.#directory.descriptor)}/${name}`, fileFlags);
  }

  [Symbol.dispose](): void {
    if (this.#directory !== undefined) closeSync(this.#directory.descriptor);
    this.#directory = undefined;
  }
}

/** Opens a single file for reading. Throws ELOOP if there is a link in its path. */
export function openWithoutLinks(path: string): number {
  using opener = new LinkFreeOpener();
  return opener.open(path);
}

/** Opens a directory, and calls `use` with a path through its descriptor, which stays valid if the directory is renamed or replaced. */
export function withOpenDirectory<Result>(path: string, use: (path: string) => Result): Result {
  if (!isLinux) return use(path);
  const descriptor = openDirectory(path);
  try {
    return use(descriptorPath(descriptor));
  } finally {
    closeSync(descriptor);
  }
}

/** Opens a path's directory, and calls `use` with a path through its descriptor: only the last name of that can be a link. */
export function withOpenParent<Result>(path: string, use: (path: string) => Result): Result {
  if (!isLinux) return use(path);
  const { directory, name } = split(path);
  return withOpenDirectory(directory, (opened) => use(`${opened}/${name}`));
}

function split(path: string): { directory: string; name: string } {
  const end = path.lastIndexOf("/");
  return { directory: path.slice(0, end) || "/", name: path.slice(end + 1) };
}

function descriptorPath(descriptor: number): string {
  return `/proc/self/fd/${descriptor}`;
}

function openDirectory(path: string): number {
  const descriptor = openSync(path, directoryFlags);
  if (readlinkSync(descriptorPath(descriptor)) === path) return descriptor;
  closeSync(descriptor);
  // The path may also be written differently: a file system may ignore case, and `//` is `/`.
  return openStepwise(path);
}

/** Opens each directory on the way from the one above it. */
function openStepwise(path: string): number {
  let descriptor = openSync("/", directoryFlags);
  for (const name of path.split("/")) {
    if (name === "") continue;
    const parent = descriptor;
    try {
      descriptor = openSync(`${descriptorPath(parent)}/${name}`, directoryFlags | constants.O_NOFOLLOW);
    } catch (error) {
      if (errorCode(error) !== "ENOTDIR") throw error;
      throw Object.assign(new Error(`ELOOP: not a directory, open '${path}'`), { code: "ELOOP" });
    } finally {
      closeSync(parent);
    }
  }
  return descriptor;
}
