import { posix } from "node:path";
import type { CopiedEntry } from "../../store/copies.ts";
import { inodesOf, withInode } from "../copy/copied-inodes.ts";
import { hashSources } from "../copy/hash-sources.ts";
import { linksInPlaceOf } from "../copy/image-links.ts";
import type { Owner } from "../copy/ownership.ts";
import type { CopyPlan } from "../copy/plan.ts";
import type { PlannedItem } from "../copy/planned-items.ts";
import { type Item, type StagedItems, stageCopied, stageItems } from "../copy/stage-items.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import { addFromUrl } from "../remote-files/download.ts";
import type { StagedContent } from "../staging/staged.ts";
import { nameOf } from "./open-archive.ts";
import { readArchive } from "./read-archive.ts";

export interface Unpacking {
  checksum: string | undefined;
  destination: CopyPlan["destination"];
  /** The owner of directories made for the destination. Docker's rule: entries keep their own owners, even with `--chown`. */
  owner: Owner;
  line: number;
}

/** Stages an archive's entries; `undefined` if it is none, whatever its name. `stageBefore`: returns the stage to add them to. */
export async function stageArchive(
  item: PlannedItem,
  { checksum, destination, owner, line }: Unpacking,
  stageBefore: () => Promise<StageState>,
  build: BuildJob,
): Promise<StagedItems | undefined> {
  if (item.kind === "document" || item.kind === "repository") return undefined;
  const place = item.kind === "url" ? { url: item.url } : { absolutePath: item.entry.absolutePath };
  const digest = await hashOf(item, checksum, build);
  const entries = await readArchive(place, digest, build);
  if (entries === undefined) return undefined;
  warnOfCapabilities(entries, nameOf(place, build), line, build);
  const { path } = destination;
  const content: StagedContent = { kind: "archive", archive: place, digest };
  const inodes = inodesOf(entries);
  const contents = entries.map((entry): Item => {
    const target = posix.join(path, entry.path);
    if (entry.type === "directory" && entry.isImplied)
      return { path: target, entry: undefined, isImplied: true };
    const { uid, gid } = entry;
    const staged = stageCopied(entry, content, (mode) => mode, { uid, gid, line });
    const isDirectory = staged.type === "directory";
    return {
      path: target,
      entry: isDirectory ? { ...staged, isExplicit: true } : withInode(staged, entry, inodes),
    };
  });
  const items = path === "/" ? contents : [{ path, entry: undefined }, ...contents];
  const stage = await stageBefore();
  if (build.mode === "docker") await warnOfLinks(items, { path, line }, stage, build);
  return stageItems(items, { path, isDirectory: true }, { owner, line }, stage, build);
}

/** Warns of programs, such as newuidmap, that lack their capabilities in the image. Docker keeps them. */
function warnOfCapabilities(
  entries: readonly CopiedEntry[],
  archive: string,
  line: number,
  build: BuildJob,
): void {
  const [first, ...others] = entries.filter(
    (entry) => entry.type === "file" && entry.hasCapabilities === true,
  );
  if (first === undefined) return;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  const message = `${archive}: capabilities of files are not kept, unlike in Docker (${first.path}${more}): give them with setcap in a RUN, or unpack it there`;
  build.emit({ type: "warning", message, line });
}

/** Warns of links such as `/lib` that Docker would replace by directories, losing the files behind them: rarely intended. */
async function warnOfLinks(
  items: readonly Item[],
  { path, line }: { path: string; line: number },
  stage: StageState,
  build: BuildJob,
): Promise<void> {
  const directories = items.flatMap((item) =>
    item.entry?.type === "directory" && item.path !== path ? [item.path] : [],
  );
  for await (const link of linksInPlaceOf(directories, path, stage, build)) {
    const message = `${link} is a link in the image and a directory in the archive: its files go to the link's target; Docker would replace the link with a directory`;
    build.emit({ type: "warning", message, line });
  }
}

async function hashOf(
  item: Extract<PlannedItem, { kind: "entry" | "url" }>,
  checksum: string | undefined,
  build: BuildJob,
): Promise<string> {
  if (item.kind === "url") return (await addFromUrl(item.url, checksum, build)).sha256;
  const { entry } = item;
  if (entry.type !== "file") throw new Error(`${entry.absolutePath} is not a file`);
  const { signal, clock, hashes: cache, inputs } = build;
  const early = { offer: () => undefined };
  await hashSources([entry], { signal, clock, cache, early, inputs });
  return entry.list.hashAt(entry.index);
}
