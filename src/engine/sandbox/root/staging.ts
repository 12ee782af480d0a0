import { chmodSync, lstatSync, mkdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { BoughError } from "../../../errors.ts";
import { createPace } from "../../../pace.ts";
import { resolveInRoot } from "./root-path.ts";
import { createVerifiedCopier, type StoredContent } from "./verified-copy.ts";

/** A content on its way to a place in a sandbox. */
export interface PlacedContent extends StoredContent {
  /** Absolute, as the image sees it. */
  destination: string;
}

/** A stored one. */
export interface PlacedFile extends PlacedContent {
  /** The store's name of it. */
  uuid: string;
}

/** Stored files are not what was sent any more. The client that reads "no longer" sends them again. */
export class DamagedFilesError extends BoughError {
  /** SHA-256 of what was sent. */
  readonly damaged: readonly string[];

  constructor(damaged: readonly PlacedFile[]) {
    const [first] = damaged;
    const many =
      damaged.length === 1 ? "a stored file no longer has" : `${damaged.length} stored files no longer have`;
    super(`${many} the bytes that were uploaded (for ${first?.destination}): upload again`);
    this.damaged = [...new Set(damaged.map(({ sha256 }) => sha256))];
  }
}

/**
 * Puts files in place below `root`. Links in the directories on the way are followed inside the root; what stands at the
 * destination itself is replaced, a link too, as COPY does. The copies share no inode with the store: a command that
 * writes to one changes nothing else.
 *
 * @throws DamagedFilesError naming all files whose stored bytes do not have their SHA-256
 */
export async function stageFiles(root: string, files: readonly PlacedFile[]): Promise<void> {
  const directories = new Map<string, string>();
  const copy = createVerifiedCopier();
  const damaged: PlacedFile[] = [];
  // Thousands of small files must not keep everything else in this process waiting.
  const pace = createPace(undefined);
  for (const file of files) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
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
    const copied = copy(file, path);
    // All of them are looked at, so that one more upload makes all of them good.
    if (!(typeof copied === "boolean" ? copied : await copied)) damaged.push(file);
  }
  if (damaged.length > 0) throw new DamagedFilesError(damaged);
}

/**
 * Makes `directory` as the image sees it, where missing: root's, 0755. Returns its path on this machine. `purpose` is for
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
