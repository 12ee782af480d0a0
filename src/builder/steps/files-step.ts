import type { Instruction } from "../../dockerfile/instruction.ts";
import { chainHash, chainHashHead } from "../cache/chain-hash.ts";
import type { StepKey } from "../cache/step-key.ts";
import type { FoundFiles } from "../copy/copy.ts";
import { knownHash, rememberHash } from "../copy/copy-state.ts";
import { type BuildJob, jobUsing } from "../job.ts";
import { titleOf } from "../location.ts";
import { collectGarbage } from "../operations/gc.ts";
import { type StageState, withLayer } from "../state/state.ts";
import { findOrMake, takeFound } from "./find-or-make.ts";
import type { Step } from "./step.ts";

/** Makes a layer of the staged files, on a service that needs no command for it. */
export async function makeFilesLayer(
  instruction: Instruction,
  ordinal: number,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  if (stage.staged.size === 0) return stage;
  return withLayer(stage, await findOrMake(filesStep(instruction, ordinal, stage), build));
}

/** The same for files that are not staged yet. If they have not changed, the hash is known without reading them; see `copy-state.ts`. */
export async function makeFoundFilesLayer(
  instruction: Instruction,
  ordinal: number,
  stage: StageState,
  given: BuildJob,
  files: FoundFiles,
): Promise<StageState> {
  const build = jobUsing([stage.layer], given);
  const { layers, memory, signal } = build.services;
  const state = files.state();
  const unread = filesStep(instruction, ordinal, stage);
  const head = chainHashHead(unread.key);
  const known = build.useCache ? knownHash(state, head, build.source) : undefined;
  if (known !== undefined && !memory.needsInputs(unread, known)) {
    const found = await layers.find(known, stage.layer);
    if (found !== undefined) {
      files.report();
      return withLayer(stage, await takeFound(unread, found, build));
    }
  }
  const { stage: whole, areSettled } = await files.stage();
  if (whole.staged.size === 0) return stage;
  collectGarbage(whole.staged.size);
  const step = filesStep(instruction, ordinal, whole);
  const hash = await chainHash(step.key, signal);
  if (areSettled) rememberHash(hash, state, head, build.source);
  return withLayer(whole, await findOrMake(step, build, hash));
}

/** The layer depends on the files and on the layer below, on no variables and no user. */
function filesStep(instruction: Instruction, ordinal: number, stage: StageState): Step {
  const key: StepKey = { parent: stage.layer, instruction: "files", files: stage.staged };
  const step: Step = {
    ...{ title: titleOf(instruction), line: instruction.range.start, ordinal, key },
    ...{ sources: [], history: "copy" },
    async make(hash, build) {
      const { makeOfFiles } = await import("./layer-instance.ts");
      return makeOfFiles(hash, step, stage, build);
    },
  };
  return step;
}
