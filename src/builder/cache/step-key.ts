import type { Layer } from "../state/layer.ts";
import type { Staged } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";

/**
 * Everything that a step's layer depends on, part by part. The hash of the parts is the chain hash (`chain-hash.ts`). The same parts
 * are stored as text (`step-inputs.ts`), and the first one that differs from the build before is why a step was not cached
 * (`step-difference.ts`).
 */
export interface StepKey {
  /** The layer below. */
  parent: Layer;
  /** The instruction's name, or another word that stands for it in the hash. */
  instruction: string;
  /** Options that a later build may change without changing the instruction's text. */
  options?: readonly KeyOption[];
  mounts?: MountInputs;
  /**
   * The command's form and words, with variables replaced. Those of secrets have their values, so that a changed secret makes another
   * layer.
   */
  command?: readonly string[];
  /** The variables, user and directory of a command. Files depend on none of them. */
  state?: Pick<StageState, "args" | "env" | "config">;
  /** How the name of the user is found, where that changes what the command sees. */
  userLookUp?: string;
  /** The sources, destination and options of a `COPY --from`, by the names that an explanation shows. Hashed as JSON in this order. */
  copy?: Readonly<Record<string, unknown>>;
  source?: SourceInput;
  /** Files that the layer gets from the context, URLs, archives and repositories. */
  files: Staged;
}

interface KeyOption {
  /** The name that an explanation shows, such as `--network`. */
  name: string;
  /** The text that is hashed. */
  text: string;
}

/** The stage or image of a `COPY --from`. */
interface SourceInput {
  /** The name in `--from`. */
  from: string;
  /** Its chain hash. */
  hash: string;
}

/** The mounts of a RUN. */
interface MountInputs {
  /** The mounts as JSON, without what makes no difference to the layer. */
  key: string;
  /** Files of the context, by the path at which the command sees them. */
  files: Staged;
  images: readonly MountedImage[];
}

/** A path of a stage or image that is mounted. */
export interface MountedImage {
  /** The stage or image as it is written. */
  from: string;
  /** Absolute. */
  path: string;
  /** The chain hash of the stage or image. */
  hash: string;
}

/** Returns the parts that any command of a stage depends on. */
export function stageKey(stage: StageState): Pick<StepKey, "parent" | "state" | "files"> {
  return { parent: stage.layer, state: stage, files: stage.staged };
}
