import { posix } from "node:path";
import type { CopiedEntry } from "../../store/copies.ts";
import { archiveName } from "../archives/open-archive.ts";
import { readArchive } from "../archives/read-archive.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import type { Owner } from "../owners/ownership.ts";
import { addFromUrl } from "../remote-files/download.ts";
import { whyUnmade } from "../staging/special-files.ts";
import type { StagedContent, StagedEntry } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";
import { hashSources } from "./hash-sources.ts";
import type { CopyPlan } from "./plan.ts";
import type { PlannedItem } from "./planned-items.ts";
import { type Item, type StagedItems, stageCopied, stageItems } from "./stage-items.ts";
import type { CopyWords } from "./words.ts";

export interface Unpacking {
  destination: CopyPlan["destination"];
  /** The owner of directories made for the destination, and with `--chown` also of all entries. */
  owner: Owner;
  words: Pick<CopyWords, "checksum" | "chown">;
  line: number;
}

/** Stages an archive's entries; `undefined` if the file is not an archive, whatever its name. `stageBefore`: returns the stage to add them to. */
export async function stageArchive(
  item: PlannedItem,
  { words, destination, owner, line }: Unpacking,
  stageBefore: () => Promise<StageState>,
  build: BuildJob,
): Promise<StagedItems | undefined> {
  if (item.kind === "document" || item.kind === "repository") return undefined;
  const place = item.kind === "url" ? { url: item.url } : { absolutePath: item.entry.absolutePath };
  const digest = await hashOf(item, words.checksum, build);
  const all = await readArchive(place, digest, build);
  if (all === undefined) return undefined;
  const entries = await supportedEntries(all, archiveName(place, build.asked.buildArgs), line, build);
  const stage = await stageBefore();
  const { path } = destination;
  const content: StagedContent = { kind: "archive", archive: place, digest };
  const inodes = inodesOf(entries);
  const replacing = (await mayReplace(path, stage, build.services)) ? ({ replaces: true } as const) : {};
  const contents = entries.map((entry): Item => {
    const target = posix.join(path, entry.path);
    if (entry.type === "directory" && entry.isImplied)
      return { path: target, entry: undefined, isImplied: true };
    const { uid, gid } = entry;
    const owned = { ...(words.chown === "" ? { uid, gid } : owner), line };
    const staged = { ...stageCopied(entry, content, (mode) => mode, owned), ...replacing };
    const isDirectory = staged.type === "directory";
    return {
      path: target,
      entry: isDirectory ? { ...staged, isExplicit: true } : withInode(staged, entry, inodes),
    };
  });
  const items = path === "/" ? contents : [{ path, entry: undefined }, ...contents];
  return stageItems(items, { path, isDirectory: true }, { owner, line }, stage, build.services);
}

/**
 * Leaves out what the service can't make, with one warning for devices and pipes and one for attributes. Docker's daemon, which
 * always is root, keeps them.
 */
async function supportedEntries(
  entries: readonly CopiedEntry[],
  archive: string,
  line: number,
  build: BuildJob,
): Promise<readonly CopiedEntry[]> {
  const special = entries.filter((entry) => entry.type === "special");
  const programs = entries.filter(({ attributes }) => attributes?.[fileCapabilities] !== undefined);
  if (special.length + programs.length === 0) return entries;
  const warn = (what: string, [first, ...others]: readonly CopiedEntry[], advice: string) => {
    if (first === undefined) return;
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    const message = `${archive}: ${what}, unlike in Docker (${first.path}${more})${advice}`;
    build.emit({ type: "warning", message, line });
  };
  if (!(await build.services.supports.fileFeatures()).attributes)
    warn(
      "capabilities of files are not kept",
      programs,
      ": give them with setcap in a RUN, or unpack it there",
    );
  /** What was left out, with the reasons. */
  const leftOut = new Map<CopiedEntry, string>();
  for (const entry of special) {
    const reason = await whyUnmade(entry, build.services.supports);
    if (reason !== undefined) leftOut.set(entry, reason);
  }
  const [reason] = leftOut.values();
  warn("devices and pipes are left out", [...leftOut.keys()], `: ${reason}`);
  return leftOut.size === 0 ? entries : entries.filter((entry) => !leftOut.has(entry));
}

const fileCapabilities = "security.capability";

/** Returns false if there is certainly nothing below the destination that an entry could replace. */
async function mayReplace(
  path: string,
  { layer, staged }: StageState,
  { inspection, supports }: BuildServices,
): Promise<boolean> {
  if (path === "/" || staged.size > 0 || !supports.inspection()) return true;
  return (await inspection.typeAt(layer.image, path)) !== undefined;
}

async function hashOf(
  item: Extract<PlannedItem, { kind: "entry" | "url" }>,
  checksum: string | undefined,
  build: BuildJob,
): Promise<string> {
  if (item.kind === "url") return (await addFromUrl(item.url, checksum, build)).sha256;
  const { entry } = item;
  if (entry.type !== "file") throw new Error(`${entry.absolutePath} is not a file`);
  const { signal, clock } = build.services;
  const { hashes: cache } = build.source;
  const { inputs } = build;
  const eagerUploads = { offer: () => undefined };
  await hashSources([entry], { signal, clock, cache, eagerUploads, inputs });
  return entry.list.hashAt(entry.index);
}

/** Inodes of files with several hard links, by the path of the first one. */
export type CopiedInodes = ReadonlyMap<string, symbol>;

export function inodesOf(entries: readonly CopiedEntry[]): CopiedInodes {
  const inodes = new Map<string, symbol>();
  for (const entry of entries)
    if (entry.type === "file" && entry.original !== undefined && !inodes.has(entry.original))
      inodes.set(entry.original, Symbol(entry.original));
  return inodes;
}

/** Returns the path of the first hard link to an entry's file; of any other entry, its own path. */
export function firstPathOf(entry: CopiedEntry): string {
  return (entry.type === "file" ? entry.original : undefined) ?? entry.path;
}

export function withInode(staged: StagedEntry, entry: CopiedEntry, inodes: CopiedInodes): StagedEntry {
  const inode = staged.type === "file" ? inodes.get(firstPathOf(entry)) : undefined;
  return staged.type === "file" && inode !== undefined ? { ...staged, inode } : staged;
}
