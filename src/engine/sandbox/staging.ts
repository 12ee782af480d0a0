import { chmodSync, chownSync, constants, copyFileSync, lstatSync, mkdirSync, rmSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { BoughError } from "../../errors.ts";
import { resolveInRoot } from "./root-path.ts";

/** A stored content on its way to a place in a sandbox. */
export interface StagedFile {
  /** Absolute, as the image sees it. */
  destination: string;
  source: string;
  size: number;
  uid: number;
  gid: number;
  /** Permission bits with setuid, setgid and sticky. */
  mode: number;
}

/**
 * Puts files in place below `root`. Links in the directories on the way are followed inside the root; what stands at the
 * destination itself is replaced, a link too, as COPY does. The copies share no inode with the store: a command that
 * writes to one changes nothing else.
 */
export async function stageFiles(root: string, files: readonly StagedFile[]): Promise<void> {
  const directories = new Map<string, string>();
  for (const [index, file] of files.entries()) {
    // Thousands of small files must not keep everything else in this process waiting.
    if (index % 100 === 99) await Bun.sleep(0);
    const parent = dirname(file.destination);
    const directory =
      directories.get(parent) ?? makeDirectories(root, parent, `put a file at ${file.destination}`);
    directories.set(parent, directory);
    const path = join(directory, basename(file.destination));
    const existing = lstatSync(path, { throwIfNoEntry: false });
    if (existing?.isDirectory()) {
      throw new BoughError(`cannot put a file at ${file.destination}: there is a directory in the image`);
    }
    if (existing !== undefined) rmSync(path);
    // A small copy is over before a task could be handed to another thread.
    if (file.size < 256 * 1024) copyFileSync(file.source, path, constants.COPYFILE_FICLONE);
    else await copyFile(file.source, path, constants.COPYFILE_FICLONE);
    chownSync(path, file.uid, file.gid);
    // After the owner, whose change takes setuid and setgid away.
    chmodSync(path, file.mode);
  }
}

/**
 * Makes `directory` as the image sees it, where missing: root's, 0755. Answers its path on this machine. `purpose` is for
 * the message, after "cannot".
 */
export function makeDirectories(root: string, directory: string, purpose: string): string {
  const found = resolveInRoot(root, directory, { followLast: true });
  if (found.stats?.isDirectory()) return found.path;
  let path = root;
  for (const component of found.inside.split("/").filter((name) => name !== "")) {
    path = join(path, component);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory()) continue;
    if (stats !== undefined) {
      throw new BoughError(`cannot ${purpose}: ${path.slice(root.length)} in the image is not a directory`);
    }
    mkdirSync(path);
    chmodSync(path, 0o755);
  }
  return path;
}
