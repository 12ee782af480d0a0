import { createOutputText, type OutputText } from "../../../history/output-text.ts";
import type { OutputChunk } from "../../../service/service.ts";

/** Characters of output in memory between two notes, beside that of running steps. More is not recorded. */
const maxHeldOutput = 4 * 1024 * 1024;

/** Output of steps. `mask`: masks secrets. */
export function createRecordedOutput(keepsOutput: boolean, mask: (text: string) => string) {
  const running = new Map<number, OutputText>();
  /** Of steps that have ended. */
  const sizes = new Map<number, { length: number; kept: number }>();
  const unsaved = new Map<number, string>();
  /** Output of all steps, for the page. */
  const kept = new Map<number, string>();
  /** Characters of `unsaved`. */
  let held = 0;
  let isHeld = true;

  function end(step: number): void {
    const output = running.get(step)?.read();
    running.delete(step);
    if (output === undefined || output.length === 0) return;
    const text = mask(output.text);
    const isSaved = isHeld && held < maxHeldOutput;
    if (isSaved) {
      unsaved.set(step, text);
      held += text.length;
    }
    if (keepsOutput) kept.set(step, text);
    sizes.set(step, { length: output.length, kept: isSaved || keepsOutput ? text.length : 0 });
  }

  return {
    ...{ sizes, unsaved, kept, end },
    /** False once nothing can be saved any more. */
    get isHeld() {
      return isHeld;
    },
    add(step: number, chunk: OutputChunk): void {
      running.getOrInsertComputed(step, createOutputText).append(chunk);
    },
    endAll(): void {
      for (const step of [...running.keys()]) end(step);
    },
    forgetUnsaved(): void {
      unsaved.clear();
      held = 0;
    },
    stopHolding(): void {
      isHeld = false;
    },
  };
}
