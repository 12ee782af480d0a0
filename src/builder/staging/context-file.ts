import type { ListedFile } from "../../context/sources/entry-list.ts";
import type { GivenOwner, LocalContent, StagedFile } from "../state/staged.ts";

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
