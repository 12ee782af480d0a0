import type { BuildEvent } from "../../../builder/events.ts";
import { createOutputText, type OutputText } from "../../../history/output-text.ts";
import type { Progress } from "../../../terminal/progress.ts";

/** The maximum number of characters that are kept of a failed command's output: its end, where the reason usually is. */
const maxKept = 4096;
/** The maximum number of commands whose output is kept. */
const maxCommands = 1000;

/** The last output of failed commands. Only one of several builds that share a failed command receives its output. */
export interface LastOutput {
  /** Returns the output of an operation. */
  of(operation: string): string | undefined;
  /** Returns a display that also records output. */
  watch(progress: Progress, mask: (text: string) => string): Progress;
}

export function createLastOutput(): LastOutput {
  const outputs = new Map<string, string>();
  return {
    of: (operation: string) => outputs.get(operation),
    watch(progress, mask) {
      const running = new Map<number, OutputText>();
      const note = (event: BuildEvent) => {
        if (event.type === "output")
          running.getOrInsertComputed(event.step, createOutputText).append(event.chunk);
        if (event.type !== "ran") return;
        const text = running.get(event.step)?.read().text;
        running.delete(event.step);
        if (event.succeeded || event.abandoned || text === undefined) return;
        if (outputs.size < maxCommands) outputs.set(event.operation, endOf(mask(text)));
      };
      return {
        ...progress,
        emit(event) {
          note(event);
          progress.emit(event);
        },
      };
    },
  };
}

/** Returns the last whole lines. */
function endOf(text: string): string {
  if (text.length <= maxKept) return text;
  const end = text.slice(-maxKept);
  const line = end.indexOf("\n") + 1;
  return line > 0 && line < end.length ? end.slice(line) : end;
}
