import type { StageState } from "../interpreter/state.ts";
import type { Staged, StagedEntry } from "./staged.ts";

/**
 * Files that a COPY has found but not staged, because all of them are in the state for which the chain hash of a step was once
 * computed. Only their number is known. To get the files, stage them first with `stageDeferred`.
 */
export class DeferredFiles implements Staged {
  /** The minimum number of files. */
  readonly size: number;
  /** The state of the files, see `copyState`. */
  readonly copy: string;
  readonly #stage: () => Promise<Staged>;

  constructor({ size, copy }: Pick<DeferredFiles, "size" | "copy">, stage: () => Promise<Staged>) {
    this.size = size;
    this.copy = copy;
    this.#stage = stage;
  }

  stage(): Promise<Staged> {
    return this.#stage();
  }

  get(): never {
    return notStaged();
  }
  has(): never {
    return notStaged();
  }
  keys(): never {
    return notStaged();
  }
  values(): never {
    return notStaged();
  }
  entries(): never {
    return notStaged();
  }
  forEach(): never {
    return notStaged();
  }
  [Symbol.iterator](): MapIterator<[string, StagedEntry]> {
    return notStaged();
  }
}

function notStaged(): never {
  throw new Error("the files of a COPY are looked at before they are staged");
}

/** Returns the stage with deferred files staged. */
export async function stageDeferred(stage: StageState): Promise<StageState> {
  const { staged } = stage;
  return staged instanceof DeferredFiles ? { ...stage, staged: await staged.stage() } : stage;
}
