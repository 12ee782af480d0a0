import { posix } from "node:path";
import type { ImageConfig } from "../../image/config.ts";
import type { ImageOrigin } from "../../image/history.ts";
import { attachLayer, type StageStep } from "./history.ts";
import type { Layer } from "./layer.ts";
import { pathInImage } from "./path-in-image.ts";
import type { StageScope } from "./scope.ts";
import type { Staged } from "./staged.ts";

/** The state of a stage: everything that the next RUN and its chain hash depend on. */
export interface StageState extends StageScope {
  layer: Layer;
  /** The image from which the stage starts, possibly through other stages. */
  base: string;
  /** True if that image is Docker's empty one, `scratch`. */
  isFromScratch: boolean;
  config: ImageConfig & {
    /** Absolute. */
    WorkingDir: string;
  };
  /** The absolute WORKDIR as written, possibly with a slash at its end, which Docker keeps in the image. */
  workdirAsWritten: string | undefined;
  /** True from a WORKDIR until a layer has its directory. */
  workdirIsPending: boolean;
  staged: Staged;
  /** The base image's author and history. */
  origin: ImageOrigin;
  /** The steps since the base image. */
  steps: StageStep | undefined;
}

/** `config`, `origin`: the image's own, if they are known. */
export function startStage(layer: Layer, config: ImageConfig = {}, origin: ImageOrigin = {}): StageState {
  return {
    layer,
    base: layer.image,
    isFromScratch: false,
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

/** Returns true if the stage has no files yet. */
export function isEmpty({ isFromScratch, base, layer, staged }: StageState): boolean {
  return isFromScratch && layer.image === base && staged.size === 0;
}

export function changeWorkdir(stage: StageState, path: string): StageState {
  const WorkingDir = pathInImage(stage.config.WorkingDir, path);
  const workdirAsWritten = path.startsWith("/") ? path : WorkingDir;
  return { ...stage, config: { ...stage.config, WorkingDir }, workdirAsWritten, workdirIsPending: true };
}

/** Performs an empty WORKDIR: the directory stays, but Docker then names it in the image, even if it is the root. */
export function keepWorkdir(stage: StageState): StageState {
  return { ...stage, workdirAsWritten: stage.workdirAsWritten ?? stage.config.WorkingDir };
}

/** Sets the user. An empty name undoes an earlier USER and the image's own. */
export function changeUser(stage: StageState, User: string): StageState {
  const { User: _, ...config } = stage.config;
  return { ...stage, config: User === "" ? config : { ...config, User } };
}

/** Returns the stage with a new layer, which contains everything that was staged. */
export function withLayer(stage: StageState, layer: Layer): StageState {
  // A command that changes nothing does not change the image.
  const steps = layer.image === stage.layer.image ? stage.steps : attachLayer(stage.steps);
  return { ...stage, layer, steps, staged: new Map(), workdirIsPending: false };
}
