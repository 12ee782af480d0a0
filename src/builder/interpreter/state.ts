import { posix } from "node:path";
import type { ImageConfig } from "../../image/config.ts";
import type { ImageOrigin } from "../../image/history.ts";
import type { Layer } from "../cache/layer-cache.ts";
import type { Staged } from "../staging/staged.ts";
import { giveLayer, type StageStep } from "./history.ts";
import { pathInImage } from "./path-in-image.ts";
import type { StageScope } from "./scope.ts";

/** What the next RUN depends on; its chain hash is computed from this and from nothing else. */
export interface StageState extends StageScope {
  layer: Layer;
  /** The image that the first of its FROMs names. */
  base: string;
  config: ImageConfig & {
    /** Absolute. */
    WorkingDir: string;
  };
  /** The absolute WORKDIR as it is written, perhaps with a slash at its end: Docker leaves it so in the image. */
  workdirAsWritten: string | undefined;
  /** WORKDIR makes its directory; true until a layer has done that. */
  workdirIsPending: boolean;
  staged: Staged;
  /** The base image's author and history. */
  origin: ImageOrigin;
  /** What the instructions have done since. */
  steps: StageStep | undefined;
}

/** `config`, `origin`: the image's own, where they are known. */
export function startStage(layer: Layer, config: ImageConfig = {}, origin: ImageOrigin = {}): StageState {
  return {
    layer,
    base: layer.image,
    config: { ...config, WorkingDir: posix.resolve("/", config.WorkingDir ?? "/") },
    origin,
    steps: undefined,
    workdirAsWritten: config.WorkingDir,
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
  const workdirAsWritten = path.startsWith("/") ? path : undefined;
  return { ...stage, config: { ...stage.config, WorkingDir }, workdirAsWritten, workdirIsPending: true };
}

/** An empty name takes back what an earlier USER or the image has set. */
export function changeUser(stage: StageState, User: string): StageState {
  const { User: _, ...config } = stage.config;
  return { ...stage, config: User === "" ? config : { ...config, User } };
}

/** A new layer holds whatever was staged. */
export function withLayer(stage: StageState, layer: Layer): StageState {
  // A command that changes nothing leaves the image as it is.
  const steps = layer.image === stage.layer.image ? stage.steps : giveLayer(stage.steps);
  return { ...stage, layer, steps, staged: new Map(), workdirIsPending: false };
}
