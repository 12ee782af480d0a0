import type { StageState } from "../interpreter/state.ts";
import type { Staged, StagedEntry } from "./staged.ts";

/**
 * What a COPY has found and not staged: all of it is as it was when the chain hash of a step was computed with it. Only its
 * number can be asked for; whoever needs the files has them staged first, by `stageDeferred`.
 */
export class DeferredFiles implements Staged {
  /** How many files there are at least. */
  readonly size: number;
  /** The state of the files, see `copyState`. */
  readonly copy: string;
  readonly #stage: () => Promise<Staged>;

  constructor(size: number, copy: string, stage: () => Promise<Staged>) {
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

/** Returns the stage with all that was put off done. */
export async function stageDeferred(stage: StageState): Promise<StageState> {
  const { staged } = stage;
  return staged instanceof DeferredFiles ? { ...stage, staged: await staged.stage() } : stage;
}
