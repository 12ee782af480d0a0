import { posix } from "node:path";
import type { CopyInstruction, Instruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import type { CopiedEntry, CopiedSource } from "../../store/copies.ts";
import { titleOf } from "../interpreter/location.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import type { ImageContent, StagedEntry } from "../staging/staged.ts";
import { type Destination, resolveDestination } from "./destination.ts";
import { defaultDirectoryMode } from "./made-directories.ts";
import { isRoot, type Owner, resolveFileOwner, root } from "./ownership.ts";
import { readFromImage } from "./read-image.ts";
import { stageItems } from "./stage-items.ts";
import type { CopyWords } from "./words.ts";

/** An entry of a source on its way; without one, the directory that stands for its contents. */
interface Item {
  path: string;
  entry: CopiedEntry | undefined;
}

/**
 * `COPY --from` on a service that can't copy between images itself: what the sources come to in `image`, a UUID, goes to
 * the service's files, and is staged for the next RUN. Sources go one after the other, as in BuildKit: what one of them
 * has made is there for the next.
 */
export async function stageImageCopy(
  instruction: Pick<Instruction, "name" | "title" | "heredocs" | "range"> & Pick<CopyInstruction, "parents">,
  { words, source: { image, layer } }: { words: CopyWords; source: Pick<ImageContent, "image" | "layer"> },
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  const line = instruction.range.start;
  const owner = words.chown === "" ? undefined : await resolveFileOwner(words.chown, line, stage, build);
  const sources = await readFromImage(words, instruction, image, build);
  const total = { files: 0, bytes: 0 };
  let { staged } = stage;
  for (const source of sources) {
    const destination = await findDestination(words.destination, source, { ...stage, staged }, build);
    if (source.type === "directory" && staged.get(destination.path)?.type === "file")
      throw new BoughError(`cannot copy to non-directory: ${destination.path}`, {
        hint: "An instruction before, or a source before this one, has put a file there.",
      });
    const inodes = inodesOf(source);
    const placed = {
      destination,
      items: itemsOf(source, destination),
      isSourceRoot: ({ entry }: Item) => entry === undefined,
      isNestedDirectory: ({ entry }: Item) => entry?.type === "directory",
      toStaged: ({ entry }: Item, mayBeThere: boolean) => {
        if (entry === undefined) throw new Error("the root of a source is not staged as an entry");
        return toStaged(entry, source, {
          image,
          layer,
          inodes,
          owner,
          line,
          change: words.changeMode,
          mayBeThere,
        });
      },
    };
    const next = await stageItems(placed, { owner: owner ?? root, line }, { ...stage, staged }, build);
    staged = next.staged;
    total.files += next.files;
    total.bytes += next.bytes;
  }
  build.emit({ type: "staged", title: titleOf(instruction), ...total });
  return { ...stage, staged };
}

/** A file that is a link there is written through, as BuildKit does it; one within a copied directory is replaced. */
async function findDestination(
  word: string,
  { type }: CopiedSource,
  { config, staged, layer }: StageState,
  { facts }: BuildJob,
): Promise<Destination> {
  return resolveDestination(
    word,
    { count: 1, makesDirectory: type === "directory" },
    {
      workdir: config.WorkingDir,
      staged,
      isDirectoryInImage: (path) => facts.isDirectory(layer.image, path),
      readLinkInImage: (path) => facts.readLink(layer.image, path),
    },
  );
}

/** Inodes of the files with several names, by the path of the first. */
function inodesOf({ entries }: CopiedSource): ReadonlyMap<string, symbol> {
  const inodes = new Map<string, symbol>();
  for (const entry of entries)
    if (entry.type === "file" && entry.original !== undefined && !inodes.has(entry.original))
      inodes.set(entry.original, Symbol(entry.original));
  return inodes;
}

function itemsOf({ type, name, entries }: CopiedSource, { path, isDirectory }: Destination): Item[] {
  if (type === "file")
    return entries.map((entry) => ({ path: isDirectory ? posix.join(path, name) : path, entry }));
  const contents = entries.map((entry) => ({ path: posix.join(path, entry.path), entry }));
  return path === "/" ? contents : [{ path, entry: undefined }, ...contents];
}

interface Staging {
  image: string;
  layer: ImageContent["layer"];
  inodes: ReadonlyMap<string, symbol>;
  /** `--chown`; without it, the source's own. */
  owner: Owner | undefined;
  line: number;
  change: CopyWords["changeMode"];
  mayBeThere: boolean;
}

function toStaged(
  entry: CopiedEntry,
  { path, type }: CopiedSource,
  { image, layer, inodes, owner, line, change, mayBeThere }: Staging,
): StagedEntry {
  const { uid, gid } = owner ?? entry;
  switch (entry.type) {
    case "symlink":
      return { type: "symlink", target: entry.target, uid, gid, line };
    case "directory": {
      const mode = change(entry.mode, true);
      const isExplicit = mayBeThere || mode !== defaultDirectoryMode || !isRoot({ uid, gid });
      return { type: "directory", mode, isExplicit, uid, gid, line };
    }
    case "file": {
      const { sha256, size } = entry;
      const first = entry.original ?? entry.path;
      const from = posix.join(path, first);
      const inode = inodes.get(first);
      const content: ImageContent = {
        kind: "image",
        image,
        layer,
        path: from,
        ...(type === "directory" && { tree: path }),
      };
      const file = {
        type: "file",
        sha256,
        size,
        mode: change(entry.mode, false),
        content,
        uid,
        gid,
        line,
      } as const;
      return inode === undefined ? file : { ...file, inode };
    }
  }
}
