/**
 * Chain hashes of unchanged files: if `stat` reports all files in the state in which they were hashed and staged before, the next step
 * has the same chain hash as then, and no file is read.
 */
import { digestOfMatches } from "../../context/sources/entry-list.ts";
import { chmodKey } from "../../image/file-mode.ts";
import { sha256Of } from "../../sha256.ts";
import type { BuildJob, SourceFiles } from "../job.ts";
import type { Owner } from "../owners/ownership.ts";
import type { StageState } from "../state/state.ts";
import type { CopyPlan } from "./plan.ts";
import type { CopyWords } from "./words.ts";

/** Two digests; see `FileStateRow`. */
export interface CopyState {
  sources: string;
  copy: string;
}

/** The version of the hashed format. A change of meaning increments it, so that earlier states are not found. */
const formatVersion = 2;

/**
 * Returns the state of the files that a COPY stages and of everything that decides how. Returns `undefined` if there are other
 * sources than the context's files, or if an observer has to see each file.
 */
export function copyState(
  { words, plan, owner }: { words: CopyWords; plan: CopyPlan; owner: Owner },
  { layer, config, workdirIsPending, staged }: StageState,
  { asked, inputs, services }: BuildJob,
): CopyState | undefined {
  const { matches, others } = plan.items;
  const isAlone = others.length === 0 && staged.size === 0;
  if (!isAlone || inputs?.file !== undefined || !matches.some(({ entries }) => entries.files > 0))
    return undefined;
  const sources = digestOfMatches(matches);
  const { path, isDirectory } = plan.destination;
  // The image's files decide about directories that exist already.
  const image = [layer.image, !services.supports.inspection()];
  const place = [path, isDirectory, config.WorkingDir, workdirIsPending];
  const owned = [owner.uid, owner.gid, ...(owner.names === undefined ? [] : [owner.names])];
  const given = [formatVersion, sources, asked.dialect.name, chmodKey(words.chmod), ...owned, place, image];
  return { sources, copy: sha256Of(JSON.stringify(given)) };
}

/** Returns the chain hash that a step has if nothing has changed since it was computed. `head`: see `chainHashHead`. */
export function knownHash(
  state: CopyState | undefined,
  head: string,
  { fileStates }: SourceFiles,
): string | undefined {
  return state === undefined ? undefined : fileStates.hashOf(state.copy, sha256Of(head));
}

/** Remembers a chain hash for the next build. Every change of the files must show in their state. */
export function rememberHash(
  hash: string,
  state: CopyState | undefined,
  head: string,
  { fileStates }: SourceFiles,
): void {
  if (state !== undefined) fileStates.set({ ...state, step: sha256Of(head), hash });
}
