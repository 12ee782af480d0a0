import { posix } from "node:path";
import type { ImageConfig } from "../../image/config.ts";
import type { Staged } from "../staging/staged.ts";
import { pathInImage } from "./path-in-image.ts";
import type { StageScope } from "./scope.ts";

/** What the next RUN depends on; its chain hash is computed from this and from nothing else. */
export interface StageState extends StageScope {
  layer: Layer;
  config: ImageConfig & {
    /** Absolute. */
    WorkingDir: string;
  };
  /** WORKDIR makes its directory; true until a layer has done that. */
  workdirIsPending: boolean;
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

/** `config`: the image's own, where it is known. */
export function startStage(layer: Layer, config: ImageConfig = {}): StageState {
  return {
    layer,
    config: { ...config, WorkingDir: posix.resolve("/", config.WorkingDir ?? "/") },
    workdirIsPending: false,
    env: new Map(),
    args: new Map(),
    inherited: undefined,
    unknown: new Map(),
    staged: new Map(),
  };
}

export function changeWorkdir(stage: StageState, path: string): StageState {
  const WorkingDir = pathInImage(stage.config.WorkingDir, path);
  return { ...stage, config: { ...stage.config, WorkingDir }, workdirIsPending: true };
}

export function changeUser(stage: StageState, User: string): StageState {
  return { ...stage, config: { ...stage.config, User } };
}

/** A new layer holds whatever was staged. */
export function withLayer(stage: StageState, layer: Layer): StageState {
  return { ...stage, layer, staged: new Map(), workdirIsPending: false };
}
