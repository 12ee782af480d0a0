import { utimesSync } from "node:fs";
import { join } from "node:path";
import { fileTime } from "../../clock.ts";
import { createPace } from "../../pace.ts";
import { type PlacedFile, placedFiles } from "../copies/file-spec.ts";
import { placeEntries } from "../copies/place-entries.ts";
import { ChangedFileError, placeFiles } from "../copies/place-files.ts";
import { UpperTree } from "../copies/upper-tree.ts";
import { LayerTree } from "../sandbox/root/layer-tree.ts";
import type { EngineState } from "../state.ts";
import { makeDirectory, setOwnerAndModeAt } from "../system/owner-and-mode.ts";
import type { FilesMount } from "./requested-mount.ts";

/** The contents of a mount of files. */
export class MountFiles {
  readonly #mount: FilesMount & { target: string };
  readonly #hostFiles: () => Iterable<PlacedFile>;
  readonly #singleFile: PlacedFile | undefined;

  constructor({ layout }: Pick<EngineState, "layout">, mount: FilesMount & { target: string }) {
    this.#mount = mount;
    this.#hostFiles = () => placedFiles(mount.hostFiles, layout);
    this.#singleFile = mount.singleFile ?? findSingleFile(this.#hostFiles());
  }

  /** Returns the bytes that the files take in memory. */
  size(): number {
    let bytes = pageBytes * (1 + this.#mount.entries.length);
    for (const { size } of this.#files()) bytes += Math.ceil(size / pageBytes) * pageBytes + inodeBytes;
    return bytes;
  }

  /** Returns the path to mount, once the files are in `directory`. */
  pathIn(directory: string): string {
    return join(directory, "files", this.#singleFile?.destination ?? "");
  }

  /** Makes the files in `directory`. */
  async make(directory: string, signal: AbortSignal): Promise<void> {
    const place = join(directory, "files");
    makeDirectory(place);
    const pace = createPace(signal);
    // A tree without layers below it: it only contains links that are made here.
    const tree = new UpperTree(place, new LayerTree([], false));
    const setTimes = await placeEntries(tree, this.#mount.entries, pace);
    try {
      await placeFiles(tree, this.#files(), pace);
    } catch (error) {
      if (!(error instanceof ChangedFileError)) throw error;
      throw new ChangedFileError(error.path, `cannot mount at ${this.#mount.target}`);
    }
    setTimes();
    if (this.#singleFile !== undefined) return;
    const { root } = this.#mount;
    setOwnerAndModeAt(place, root, root);
    if (root.mtime !== undefined) utimesSync(place, fileTime(root.mtime), fileTime(root.mtime));
  }

  *#files(): Generator<PlacedFile, undefined> {
    if (this.#singleFile !== undefined) {
      yield this.#singleFile;
      return;
    }
    yield* this.#mount.files;
    yield* this.#hostFiles();
  }
}

const pageBytes = 4096;
/** The approximate memory that Linux needs for a file on a tmpfs besides its content. */
const inodeBytes = 1024;

/** Returns the file if it is itself the target of the mount; `undefined` for a directory. */
function findSingleFile(files: Iterable<PlacedFile>): PlacedFile | undefined {
  for (const file of files) return file.destination === "/" ? { ...file, destination: "/file" } : undefined;
  return undefined;
}
