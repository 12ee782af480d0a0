import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  ftruncateSync,
  futimesSync,
  lchownSync,
  linkSync,
  lutimesSync,
  openSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { fileTime } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { whiteoutPrefix } from "../../image/archive-limits.ts";
import { opaqueWhiteout } from "../../image/layer-header.ts";
import type { TarEntry } from "../../image/tar-reader.ts";
import { errorCode } from "../../system-error.ts";
import { lstatIfExists } from "../sandbox/root/root-path.ts";
import { creating, firstMode, setOwnerAndMode } from "../system/owner-and-mode.ts";
import { type BytePath, showPath, toPath } from "../system/path.ts";
import {
  deviceNumber,
  isFileSystemAttribute,
  isWhiteout,
  makeNode,
  makeWhiteout,
  writeAttributes,
} from "../system/xattrs.ts";
import type { DeferredParts } from "./complete-layer.ts";
import { type EntryPlace, LayerDirectory } from "./layer-directory.ts";

/** The prefix of AUFS's own whiteouts, which are ignored, and of the opaque whiteout. */
const aufsPrefix = ".wh..wh.";
/** The maximum number of links to missing files; no image has more. */
const maxLinks = 100_000;
/** The number of directories after which their times are set, and not only at the end. */
const maxTimes = 200_000;

/**
 * Writes a layer's entries to a directory in overlayfs's format: whiteouts mark what the layer deletes.
 * https://github.com/opencontainers/image-spec/blob/main/layer.md
 */
export class LayerWriter {
  readonly #directory: LayerDirectory;
  readonly #inUserNamespace: boolean;
  readonly #onFile: (path: BytePath, entry: TarEntry) => void;
  readonly #links: DeferredParts["links"] = [];
  /** Directories' modification times, set later, since adding an entry changes them. */
  readonly #times = new Map<BytePath, number>();
  /** True once a directory has setgid: an entry made in it does not get this process's group. */
  #hasSetgid = false;
  #hasRoot = false;
  #isRootOpaque = false;
  #hasWhiteouts = false;
  #skippedDevices = 0;

  /** @param onFile called before a file's content is read, with the file's path in the directory */
  constructor(
    root: string,
    inUserNamespace: boolean,
    onFile: (path: BytePath, entry: TarEntry) => void = () => {},
  ) {
    this.#directory = new LayerDirectory(root, inUserNamespace);
    this.#inUserNamespace = inUserNamespace;
    this.#onFile = onFile;
  }

  async write(entry: TarEntry): Promise<void> {
    const place = this.#directory.locate(entry.name);
    if (place === undefined) this.#writeRoot(entry);
    else if (place.name.startsWith(whiteoutPrefix)) this.#writeWhiteout(place);
    else if (entry.type === "file") await this.#writeFile(place, entry);
    else if (entry.type === "directory") this.#writeDirectory(place, entry);
    else if (entry.type === "symlink") this.#writeSymlink(place, entry);
    else if (entry.type === "hardlink") this.#writeHardLink(place, entry.target);
    else this.#writeNode(place, entry);
  }

  /** The number of directories made without an entry. */
  get impliedCount(): number {
    return this.#directory.implied.size;
  }

  /** True if an entry has replaced what an earlier one had made. */
  get hasReplaced(): boolean {
    return this.#directory.hasReplaced;
  }

  /** Call it after the last entry. */
  finish(): DeferredParts {
    this.#setTimes();
    return {
      implied: [...this.#directory.implied],
      links: this.#links,
      hasRoot: this.#hasRoot,
      isRootOpaque: this.#isRootOpaque,
      hasWhiteouts: this.#hasWhiteouts,
      hasOpaque: this.#directory.hasOpaque,
      skippedDevices: this.#skippedDevices,
    };
  }

  #writeRoot(entry: TarEntry): void {
    if (entry.type !== "directory") throw new BoughError("its root is not a directory");
    this.#hasRoot = true;
    this.#setAttributes(this.#directory.root, entry, false);
  }

  #writeWhiteout({ parent, name, path }: EntryPlace): void {
    if (name === opaqueWhiteout) {
      if (parent === this.#directory.root) this.#isRootOpaque = true;
      else this.#directory.makeOpaque(parent);
      return;
    }
    if (name.startsWith(aufsPrefix)) return;
    const hidden = name.slice(whiteoutPrefix.length);
    if (["", ".", ".."].includes(hidden))
      throw new BoughError(`${showPath(name)} is not a valid whiteout name`);
    const place = `${path.slice(0, -name.length)}${hidden}`;
    const stats = lstatIfExists(toPath(place));
    // If the layer itself has an entry of that name, the entry stays.
    if (stats?.isDirectory()) this.#directory.makeOpaque(place);
    if (stats !== undefined) return;
    if (!makeWhiteout(toPath(place))) throw new BoughError("cannot create the whiteout of a deleted file");
    this.#hasWhiteouts = true;
  }

  async #writeFile({ path }: EntryPlace, entry: TarEntry): Promise<void> {
    const place = toPath(path);
    const descriptor = this.#make(path, () => openSync(place, creating, firstMode(entry.mode)));
    this.#onFile(path.slice(this.#directory.root.length + 1), entry);
    try {
      for await (const { offset, bytes } of entry.pieces()) {
        for (let done = 0; done < bytes.byteLength; )
          done += writeSync(descriptor, bytes, done, bytes.byteLength - done, offset + done);
      }
      if (entry.isSparse) ftruncateSync(descriptor, entry.size);
      setOwnerAndMode(descriptor, entry);
      writeAttributes(place, ownAttributes(entry));
      futimesSync(descriptor, fileTime(entry.modified), fileTime(entry.modified));
    } finally {
      closeSync(descriptor);
    }
  }

  #writeDirectory(place: EntryPlace, entry: TarEntry): void {
    const isNew = this.#directory.makeDirectory(place, entry.name);
    this.#setAttributes(place.path, entry, isNew);
  }

  #setAttributes(path: BytePath, entry: TarEntry, isNew: boolean): void {
    const place = toPath(path);
    if (!isNew || this.#isOwned(entry)) chownSync(place, entry.uid, entry.gid);
    chmodSync(place, entry.mode);
    if ((entry.mode & 0o2000) !== 0) this.#hasSetgid = true;
    writeAttributes(place, ownAttributes(entry));
    if (this.#times.size >= maxTimes) this.#setTimes();
    this.#times.set(path, entry.modified);
  }

  #writeSymlink({ path }: EntryPlace, entry: TarEntry): void {
    const place = toPath(path);
    this.#make(path, () => symlinkSync(toPath(entry.target), place));
    if (this.#isOwned(entry)) lchownSync(place, entry.uid, entry.gid);
    writeAttributes(place, ownAttributes(entry));
    lutimesSync(place, fileTime(entry.modified), fileTime(entry.modified));
  }

  #writeHardLink({ path }: EntryPlace, target: BytePath): void {
    const found = this.#directory.find(target);
    if (found === undefined) {
      if (this.#links.length >= maxLinks)
        throw new BoughError(`more than ${maxLinks} hard links have no target in this layer`);
      this.#links.push({ path: path.slice(this.#directory.root.length), target });
      return;
    }
    if (found.stats.isDirectory() || isWhiteout(found.stats))
      throw new BoughError(`a hard link refers to ${showPath(target)}, which is not a file`);
    if (found.path !== path) this.#make(path, () => linkSync(toPath(found.path), toPath(path)));
  }

  #writeNode({ path }: EntryPlace, entry: TarEntry): void {
    const types: Record<string, number> = {
      "3": constants.S_IFCHR,
      "4": constants.S_IFBLK,
      "6": constants.S_IFIFO,
    };
    const type = types[entry.flag];
    if (type === undefined) throw new BoughError(`${showPath(entry.name)} has an unsupported entry type`);
    // A character device 0:0 is overlayfs's whiteout.
    const isMark = entry.flag === "3" && entry.major === 0 && entry.minor === 0;
    if (entry.isDevice && (this.#inUserNamespace || isMark)) {
      this.#skippedDevices += 1;
      return;
    }
    this.#directory.clear(path);
    const place = toPath(path);
    if (!makeNode(place, type, entry.isDevice ? numberOf(entry) : 0))
      throw new BoughError(`${showPath(entry.name)} is a device, which cannot be created here`, {
        hint: "Only root can create devices.",
      });
    lchownSync(place, entry.uid, entry.gid);
    chmodSync(place, entry.mode);
    writeAttributes(place, ownAttributes(entry));
    lutimesSync(place, fileTime(entry.modified), fileTime(entry.modified));
  }

  /** Makes an entry, in place of an earlier one: an archive may have a name twice, and the last one counts. */
  #make<T>(path: BytePath, make: () => T): T {
    try {
      return make();
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error;
      this.#directory.clear(path);
      return make();
    }
  }

  #isOwned({ uid, gid }: TarEntry): boolean {
    return uid !== 0 || gid !== 0 || this.#hasSetgid;
  }

  #setTimes(): void {
    for (const [path, time] of this.#times) {
      // A later entry may have replaced the directory, and has its own time.
      const isThere = !this.#directory.hasReplaced || lstatIfExists(toPath(path))?.isDirectory();
      if (isThere) lutimesSync(toPath(path), fileTime(time), fileTime(time));
    }
    this.#times.clear();
  }
}

/** Returns an entry's extended attributes, without overlayfs's own marks, which an archive must not set. */
function ownAttributes({ attributes }: TarEntry): TarEntry["attributes"] {
  return attributes.filter(({ name }) => !isFileSystemAttribute(name));
}

function numberOf({ name, major, minor }: TarEntry): number {
  const number = deviceNumber(major, minor);
  if (number !== undefined) return number;
  throw new BoughError(`${showPath(name)} has device numbers that Linux does not support`);
}
