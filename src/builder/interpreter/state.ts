import type { Staged } from "../staging/staged.ts";
import { pathInImage } from "./path-in-image.ts";
import type { StageScope } from "./scope.ts";

/** What the next RUN depends on; its chain hash is computed from this and from nothing else. */
export interface StageState extends StageScope {
  layer: Layer;
  /** Absolute. */
  workdir: string;
  /** WORKDIR makes its directory; true until a layer has done that. */
  workdirIsPending: boolean;
  user: string | undefined;
  staged: Staged;
}

/** An image reached by an instruction. */
export interface Layer {
  /** Its chain hash, 64 hex digits. */
  hash: string;
  /** The service's UUID of the image. */
  image: string;
  /** The entry of the session's history. */
  entry: number;
  /** True where nothing had to be run for it. */
  cached: boolean;
  /** That made it, now or then; null for a FROM. */
  operation: string | null;
}

export function startStage(layer: Layer): StageState {
  return {
    name: undefined,
    layer,
    workdir: "/",
    workdirIsPending: false,
    env: new Map(),
    args: new Map(),
    inherited: undefined,
    unknown: new Map(),
    user: undefined,
    staged: new Map(),
  };
}

export function changeWorkdir(stage: StageState, path: string): StageState {
  return { ...stage, workdir: pathInImage(stage.workdir, path), workdirIsPending: true };
}

/** A new layer holds whatever was staged. */
export function withLayer(stage: StageState, layer: Layer): StageState {
  return { ...stage, layer, staged: new Map(), workdirIsPending: false };
}
