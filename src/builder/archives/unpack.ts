import { posix } from "node:path";
import type { CopiedEntry } from "../../store/copies.ts";
import { hashSources } from "../copy/hash-sources.ts";
import type { Owner } from "../copy/ownership.ts";
import type { CopyPlan, PlannedItem } from "../copy/plan.ts";
import { stageItems } from "../copy/stage-items.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import { addFromUrl } from "../remote-files/download.ts";
import type { StagedContent, StagedEntry } from "../staging/staged.ts";
import { readArchive } from "./read-archive.ts";

/** Entries of an archive on their way; without one, the directory that they are unpacked into. */
interface Item {
  path: string;
  entry: CopiedEntry | undefined;
}

export interface Unpacking {
  checksum: string | undefined;
  destination: CopyPlan["destination"];
  /** Owner of the directories that are made for it. What the archive holds keeps its own, `--chown` or not: Docker's rule. */
  owner: Owner;
  line: number;
}

/** Stages what an archive holds; `undefined` where it is none, whatever its name says. */
export async function stageArchive(
  item: PlannedItem,
  { checksum, destination, owner, line }: Unpacking,
  stage: StageState,
  build: BuildJob,
): Promise<Awaited<ReturnType<typeof stageItems>> | undefined> {
  if (item.kind === "document" || item.kind === "repository") return undefined;
  const place = item.kind === "url" ? { url: item.url } : { absolutePath: item.entry.absolutePath };
  const digest = await hashOf(item, checksum, build);
  const entries = await readArchive(place, digest, build);
  if (entries === undefined) return undefined;
  const { path } = destination;
  const contents: Item[] = entries.map((entry) => ({ path: posix.join(path, entry.path), entry }));
  const items = path === "/" ? contents : [{ path, entry: undefined }, ...contents];
  const placed = {
    destination: { path, isDirectory: true },
    items,
    isSourceRoot: ({ entry }: Item) => entry === undefined,
    isNestedDirectory: ({ entry }: Item) => entry?.type === "directory",
    toStaged: ({ entry }: Item) => {
      if (entry === undefined) throw new Error("the destination is not staged as an entry");
      return toStaged(entry, { kind: "archive", archive: place, digest }, line);
    },
  };
  return stageItems(placed, { owner, line }, stage, build);
}

async function hashOf(
  item: Extract<PlannedItem, { kind: "entry" | "url" }>,
  checksum: string | undefined,
  build: BuildJob,
): Promise<string> {
  if (item.kind === "url") return (await addFromUrl(item.url, checksum, build)).sha256;
  const { entry } = item;
  if (entry.type !== "file") throw new Error(`${entry.absolutePath} is no file`);
  const { signal, clock, hashes: cache, inputs } = build;
  const early = { offer: () => undefined };
  const hashes = await hashSources([entry], { signal, clock, cache, early, inputs });
  return hashes.get(entry.absolutePath) ?? "";
}

function toStaged(entry: CopiedEntry, content: StagedContent, line: number): StagedEntry {
  const { uid, gid } = entry;
  const owned = { uid, gid, line };
  switch (entry.type) {
    case "symlink":
      return { type: "symlink", target: entry.target, ...owned };
    case "directory":
      return { type: "directory", mode: entry.mode, isExplicit: true, ...owned };
    case "file": {
      const { sha256, size, mode, mtime } = entry;
      return {
        type: "file",
        sha256,
        size,
        mode,
        content,
        ...owned,
        ...(mtime === undefined ? {} : { mtime }),
      };
    }
  }
}
