/**
 * What files of the context come to in a chain hash, without a look at them: where `stat` says that all are in the state in which
 * they once were hashed and staged, the step after them has the chain hash that it had.
 */
import { digestOfMatches } from "../../context/sources/source-match.ts";
import { sha256Of } from "../../sha256.ts";
import { chainHashHead } from "../cache/chain-hash.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import { DeferredFiles } from "../staging/deferred-files.ts";
import type { Staged } from "../staging/staged.ts";
import type { Owner } from "./ownership.ts";
import type { CopyPlan } from "./plan.ts";
import type { CopyWords } from "./words.ts";

/** Digests, see `FileStateRow`. */
interface CopyState {
  sources: string;
  copy: string;
}

/** A new meaning gets a new number: what was remembered before is not found by it. */
const formatVersion = 2;

/** What was staged in one go, and all of it in a state in which a change shows. */
const states = new WeakMap<Staged, CopyState>();

/**
 * The state of all that a COPY stages, and of all that decides how. `undefined` where that is more than files of the context, or
 * somebody has to hear of each of them.
 */
export function copyState(
  { words, plan, owner }: { words: CopyWords; plan: CopyPlan; owner: Owner },
  { layer, config, workdirIsPending, staged }: StageState,
  { mode, inputs, service }: BuildJob,
): CopyState | undefined {
  const { matches, others } = plan.items;
  const isAlone = others.length === 0 && staged.size === 0;
  if (!isAlone || inputs !== undefined || !matches.some(({ entries }) => entries.files > 0)) return undefined;
  const sources = digestOfMatches(matches);
  const { path, isDirectory } = plan.destination;
  // What an image holds decides about directories that are there already.
  const image = [layer.image, service.capabilities.lacks("inspect")];
  const place = [path, isDirectory, config.WorkingDir, workdirIsPending];
  const given = [formatVersion, sources, mode, words.chmod, owner.uid, owner.gid, place, image];
  return { sources, copy: sha256Of(JSON.stringify(given)) };
}

export function noteState(staged: Staged, state: CopyState): void {
  states.set(staged, state);
}

/** The chain hash that a step has, if nothing has changed since it was computed. */
export function knownHash(
  stage: StageState,
  directive: readonly string[],
  { fileStates }: BuildJob,
): string | undefined {
  if (!(stage.staged instanceof DeferredFiles)) return undefined;
  return fileStates.hashOf(stage.staged.copy, stepState(stage, directive));
}

/** Remembers a chain hash for the next build, where what is staged allows that. */
export function noteHash(
  hash: string,
  stage: StageState,
  directive: readonly string[],
  { fileStates }: BuildJob,
): void {
  const state = states.get(stage.staged);
  if (state !== undefined) fileStates.set({ ...state, step: stepState(stage, directive), hash });
}

function stepState(stage: StageState, directive: readonly string[]): string {
  return sha256Of(chainHashHead(stage, directive));
}
