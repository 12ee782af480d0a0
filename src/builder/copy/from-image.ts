import { posix } from "node:path";
import type { CopyInstruction, Instruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import type { ModeChange } from "../../image/file-mode.ts";
import type { CopiedEntry, CopiedSource } from "../../store/copies.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { titleOf } from "../location.ts";
import { type Owner, resolveFileOwner, root } from "../owners/ownership.ts";
import type { ImageContent, StagedEntry } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";
import { type CopyDestination, resolveDestination } from "./destination.ts";
import { readFromImage } from "./read-image.ts";
import { type Item, stageCopied, stageItems } from "./stage-items.ts";
import { type CopiedInodes, firstPathOf, inodesOf, withInode } from "./unpack.ts";
import type { CopyWords } from "./words.ts";

/**
 * Performs `COPY --from` for a service that can't copy between images itself: uploads the sources' files of `image`, a UUID, and
 * stages them for the next RUN. Sources are placed one after the other, as in BuildKit, so a directory that one makes exists
 * for the next.
 */
export async function stageImageCopy(
  instruction: Pick<Instruction, "name" | "title" | "heredocs" | "range"> & Pick<CopyInstruction, "parents">,
  {
    words,
    source,
  }: {
    words: Pick<CopyWords, "paths" | "exclude" | "destination" | "chown" | "changeMode">;
    source: Pick<ImageContent, "image" | "evictable">;
  },
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  const line = instruction.range.start;
  const owner = words.chown === "" ? undefined : await resolveFileOwner(words.chown, line, stage, build);
  const sources = await readFromImage(words, instruction, source.image, build);
  const total = { files: 0, bytes: 0 };
  let { staged } = stage;
  for (const copied of sources) {
    const before = { ...stage, staged };
    const destination = await findDestination(words.destination, copied, before, build.services);
    if (copied.type === "directory" && staged.get(destination.path)?.type === "file")
      throw new BoughError(`cannot copy to non-directory: ${destination.path}`, {
        hint: "An earlier instruction or source has put a file there.",
      });
    const change = words.changeMode;
    const items = itemsOf(copied, destination, {
      image: source.image,
      evictable: source.evictable,
      inodes: inodesOf(copied.entries),
      owner,
      line,
      change,
    });
    const made = { owner: owner ?? root, line };
    const next = await stageItems(items, destination, made, before, build.services);
    staged = next.staged;
    total.files += next.files;
    total.bytes += next.bytes;
  }
  build.emit({ type: "staged", title: titleOf(instruction), ...total });
  return { ...stage, staged };
}

/** Finds the destination. A link there is written through, as in BuildKit; a link within a copied directory is replaced. */
async function findDestination(
  word: string,
  { type }: CopiedSource,
  { config, staged, layer }: StageState,
  { inspection }: BuildServices,
): Promise<CopyDestination> {
  return resolveDestination(
    word,
    { count: 1, makesDirectory: type === "directory" },
    {
      workdir: config.WorkingDir,
      staged,
      isDirectoryInImage: (path) => inspection.isDirectory(layer.image, path),
      readLinkInImage: (path) => inspection.readLink(layer.image, path),
    },
  );
}

function* itemsOf(
  source: CopiedSource,
  { path, isDirectory }: CopyDestination,
  staging: ImageCopyStaging,
): Generator<Item, undefined> {
  const { type, name, entries } = source;
  const lone = isDirectory ? posix.join(path, name) : path;
  if (type === "directory" && path !== "/") yield { path, entry: undefined };
  for (const entry of entries)
    yield {
      path: type === "file" ? lone : posix.join(path, entry.path),
      entry: toStaged(entry, source, staging),
    };
}

interface ImageCopyStaging {
  image: string;
  evictable: ImageContent["evictable"];
  inodes: CopiedInodes;
  /** `--chown`; `undefined`: the owner in the source. */
  owner: Owner | undefined;
  line: number;
  change: ModeChange;
}

function toStaged(
  entry: CopiedEntry,
  { path, type }: CopiedSource,
  { image, evictable, inodes, owner, line, change }: ImageCopyStaging,
): StagedEntry {
  const { uid, gid, names }: Owner = owner ?? entry;
  const from = posix.join(path, firstPathOf(entry));
  const tree = type === "directory" ? { tree: path } : {};
  const staged = stageCopied(entry, { kind: "image", image, evictable, path: from, ...tree }, change, {
    uid,
    gid,
    ...(names !== undefined && { names }),
    line,
  });
  return withInode(staged, entry, inodes);
}
