import { closeSync, constants, lstatSync, readlinkSync, readSync, type Stats } from "node:fs";
import { enterFilters, type Filter, mayPassBelow, passesAll } from "../../context/patterns/filters.ts";
import { BoughError } from "../../errors.ts";
import { openForReading } from "../../open-for-reading.ts";
import { createPace, type Pace } from "../../pace.ts";
import { namesOf } from "../../paths/path-resolution.ts";
import { RequestError } from "../http/responses.ts";
import type { Image } from "../records/images.ts";
import {
  imageTreeOf,
  type LayerTree,
  type MergedDirectory,
  type MergedEntry,
} from "../sandbox/root/layer-tree.ts";
import type { EngineState } from "../state.ts";
import { entryType, joinPath, type Path, pathBytes, withinPathLimit } from "../system/path.ts";
import { readAttributes } from "../system/xattrs.ts";
import { patternText, type Selection, selectSources } from "./copy-spec.ts";
import { openLayerTree } from "./fill-upper.ts";

/**
 * Returns the SHA-256 of everything that a copy of the selection has: names below each source, types, modes, owners, link targets,
 * hard links, extended attributes and contents. Times and the sources' own locations are left out.
 *
 * @throws BoughError if a source does not exist
 */
async function digestSelection(selection: Selection, tree: LayerTree, pace: Pace): Promise<string> {
  const digest = new SelectionDigest(tree, pace);
  for (const { path, name, type, filters } of await selectSources(selection, imageTreeOf(tree))) {
    digest.begin(type === "directory" ? "" : name);
    const names = namesOf(path);
    const last = names.pop();
    const found = last === undefined ? undefined : tree.find(tree.enterPath(names.join("/")), last);
    if (type === "directory")
      await withinPathLimit(path, () => digest.addChildren(tree.enterPath(path), "", filters));
    else if (found !== undefined)
      await digest.addEntry({ ...found, name, type: entryType(found.stats) }, name, found.stats);
  }
  return digest.end();
}

/** Returns the digest of a selection of an image whose layers are here. Throws a RequestError (404) if a source does not exist. */
export async function digestOfImage(
  state: EngineState,
  image: Image,
  selection: Selection,
  signal: AbortSignal,
): Promise<string> {
  const tree = openLayerTree(state, image);
  try {
    return await digestSelection(selection, tree, createPace(signal));
  } catch (error) {
    throw error instanceof BoughError ? new RequestError(404, error.message) : error;
  }
}

/** Hashes the selected entries of an image. */
class SelectionDigest {
  readonly #tree: LayerTree;
  readonly #pace: Pace;
  readonly #hasher = new Bun.CryptoHasher("sha256");
  readonly #buffer = Buffer.allocUnsafe(256 * 1024);
  /** The first name of each hard-linked file of the current source, by inode. */
  #named = new Map<number, Path>();

  constructor(tree: LayerTree, pace: Pace) {
    this.#tree = tree;
    this.#pace = pace;
  }

  begin(name: string): void {
    this.#named = new Map();
    this.#row(["source", name]);
  }

  end(): string {
    return this.#hasher.digest("hex");
  }

  async addChildren(directory: MergedDirectory, path: Path, filters: readonly Filter[]): Promise<void> {
    const entries = this.#tree
      .list(directory)
      .sort((one, other) => Buffer.compare(pathBytes(one.name), pathBytes(other.name)));
    for (const entry of entries) {
      const pause = this.#pace.step();
      if (pause !== undefined) await pause;
      const text = patternText(entry.name);
      const isKept = passesAll(filters, text);
      const mayHaveKept = entry.type === "directory" && mayPassBelow(filters, text);
      if (!isKept && !mayHaveKept) continue;
      const below = path === "" ? entry.name : joinPath(path, entry.name);
      await this.addEntry(entry, below, lstatSync(entry.path));
      if (entry.type === "directory")
        await this.addChildren(this.#tree.enter(directory, entry.name), below, enterFilters(filters, text));
    }
  }

  async addEntry({ type, path }: MergedEntry, name: Path, stats: Stats): Promise<void> {
    const attributes = readAttributes(path)
      .map((attribute) => [attribute.name, attribute.value.toString("hex")])
      .sort(([one = ""], [other = ""]) => (one < other ? -1 : 1));
    const row = [pathBytes(name).toString("latin1"), stats.mode, stats.uid, stats.gid, attributes];
    if (type === "symlink") this.#row([...row, readlinkSync(path, "buffer").toString("latin1")]);
    else if (type === "other") this.#row([...row, stats.rdev]);
    else if (type === "directory") this.#row(row);
    else {
      const known = stats.nlink > 1 ? this.#named.get(stats.ino) : undefined;
      if (stats.nlink > 1 && known === undefined) this.#named.set(stats.ino, name);
      const isLink = known !== undefined;
      this.#row([...row, isLink ? ["link", pathBytes(known).toString("latin1")] : stats.size]);
      if (!isLink) await this.#addContent(path);
    }
  }

  async #addContent(path: Path): Promise<void> {
    const file = openForReading(path, constants.O_NOFOLLOW);
    try {
      for (;;) {
        const length = readSync(file, this.#buffer);
        if (length === 0) return;
        this.#hasher.update(this.#buffer.subarray(0, length));
        const pause = this.#pace.step();
        if (pause !== undefined) await pause;
      }
    } finally {
      closeSync(file);
    }
  }

  /** Hashes a row as JSON, which differs for different rows. A file's content follows the row with its length. */
  #row(values: readonly unknown[]): void {
    this.#hasher.update(`${JSON.stringify(values)}\n`);
  }
}
