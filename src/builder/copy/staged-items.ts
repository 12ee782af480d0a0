import type { ListedEntry, ListedFile } from "../../context/sources/entry-list.ts";
import { sha256Of } from "../../sha256.ts";
import { modifiedSeconds } from "../addresses/source-url.ts";
import type { BuildJob } from "../job.ts";
import type { GivenOwner, LocalContent, StagedEntry, StagedFile } from "../state/staged.ts";
import type { PlannedEntry, PlannedItem, PlannedUrl } from "./planned-items.ts";
import { type Item, stageDirectory } from "./stage-items.ts";

/** Creates items on demand: for a large context, a list of all takes noticeable memory. */
export function* stagedItems(
  items: Iterable<PlannedItem>,
  urls: ReadonlyMap<PlannedItem, StagedFile>,
  owned: GivenOwner,
): Generator<Item, undefined> {
  for (const item of items) {
    const { path } = item;
    switch (item.kind) {
      case "entry": {
        if (item.isSourceRoot) yield { path, entry: undefined, mtime: timeOfRoot(item) };
        else yield { path, entry: stageEntry(item, owned) };
        break;
      }
      case "document":
        yield { path, entry: stageText(item.text, item.mode, owned) };
        break;
      case "url":
        yield { path, entry: urls.get(item) };
        break;
      case "repository":
        throw new Error("a repository is staged as a tree");
    }
  }
}

/** Returns the time of a source directory; `undefined` for the context itself, which BuildKit does not send. */
function timeOfRoot({ entry }: PlannedEntry): number | undefined {
  return entry.type === "directory" && entry.contextPath !== "" ? entry.mtimeMs / 1000 : undefined;
}

/** Returns the staged form of an entry of the context; a file has been hashed. */
export function stageEntry(
  { entry, mode }: Pick<PlannedEntry, "entry" | "mode">,
  owned: GivenOwner,
): StagedEntry {
  // Named one by one, they are stored in the object itself, which saves noticeable memory for many entries.
  const { uid, gid, line, names } = owned;
  switch (entry.type) {
    case "symlink": {
      const { target, mtimeMs } = entry;
      const link: StagedEntry = { type: "symlink", target, uid, gid, line, mtime: mtimeMs / 1000 };
      return names === undefined ? link : { ...link, names };
    }
    case "directory":
      return { ...stageDirectory(mode, owned), mtime: entry.mtimeMs / 1000 };
    case "file":
      return new ContextFile(entry, mode, owned);
    case "special":
      return stageSpecial(entry, mode, owned);
  }
}

/** A socket becomes an empty file, as in BuildKit. */
function stageSpecial(
  { special, mtimeMs }: ListedEntry & { type: "special" },
  mode: number,
  owned: GivenOwner,
): StagedEntry {
  const mtime = mtimeMs / 1000;
  return special.kind === "socket"
    ? { ...stageText("", mode, owned), mtime }
    : { type: "special", mode, ...special, ...owned, mtime };
}

export function stageText(text: string, mode: number, owned: GivenOwner): StagedFile {
  const bytes = new TextEncoder().encode(text);
  const sha256 = sha256Of(bytes);
  return { type: "file", sha256, size: bytes.length, mode, content: { kind: "text", text }, ...owned };
}

export async function stageUrl(
  { url, mode }: PlannedUrl,
  owned: GivenOwner,
  checksum: string | undefined,
  build: BuildJob,
): Promise<StagedFile> {
  const { addFromUrl } = await import("../remote-files/download.ts");
  const { sha256, size, lastModified } = await addFromUrl(url, checksum, build);
  const mtime = modifiedSeconds(lastModified);
  return { type: "file", sha256, size, mode, content: { kind: "url", url }, mtime, ...owned };
}

/** A staged file of the context. Refers to its list instead of copying the values, which saves memory for a large context. */
export class ContextFile implements StagedFile, LocalContent {
  readonly list: ListedFile["list"];
  readonly index: number;
  readonly mode: number;
  /** One object shared by all files of an instruction. */
  readonly owned: GivenOwner;

  constructor({ list, index }: Pick<ListedFile, "list" | "index">, mode: number, owned: GivenOwner) {
    this.list = list;
    this.index = index;
    this.mode = mode;
    this.owned = owned;
  }

  get type(): "file" {
    return "file";
  }

  get sha256(): string {
    return this.list.hashAt(this.index);
  }

  get size(): number {
    return this.list.sizeAt(this.index);
  }

  /** The file itself, so that callers that need only the kind build no path. */
  get content(): LocalContent {
    return this;
  }

  get kind(): "local" {
    return "local";
  }

  get absolutePath(): string {
    return this.list.absolutePathAt(this.index);
  }

  get mtime(): number {
    return this.list.mtimeMsAt(this.index) / 1000;
  }

  get inode(): symbol | undefined {
    return this.list.inodeAt(this.index);
  }

  get uid(): number {
    return this.owned.uid;
  }

  get gid(): number {
    return this.owned.gid;
  }

  get names(): string | undefined {
    return this.owned.names;
  }

  get line(): number {
    return this.owned.line;
  }
}
