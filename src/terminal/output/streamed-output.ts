import type { OutputChunk } from "../../service/service.ts";

type StreamName = OutputChunk["stream"];

/** What running commands write, passed on as it comes, between the lines of a log. */
interface StreamedOutput {
  /**
   * Both streams of a step in the order in which they were written, behind one header for as long as it says enough.
   * `label`: not empty where other steps are at work, too; then no line is broken by one of theirs. `isRest`: it did not
   * come in any order.
   */
  show(step: number, chunk: OutputChunk, label: string, isRest?: boolean): void;
  /** A step's command is over: whatever is left of its last lines is shown. */
  end(step: number, label: string): void;
  /** Ends a line that is still open, so that the log goes on with one of its own. */
  endLine(): void;
}

/** A progress bar that is redrawn by carriage returns is one line for ever. */
const maxHeld = 4096;

/** `write`: as is, behind the headers that `announce` prints. */
export function createStreamedOutput(
  write: (text: string) => void,
  announce: (stream: StreamName, label: string) => void,
): StreamedOutput {
  /** Lines that have not ended, of steps that are not alone. */
  const held = new Map<string, string>();
  /** Whose output was written last, and of which streams a header has told. */
  let speaker: { step: number; announced: Set<StreamName> } | undefined;
  let isAtLineStart = true;

  function endLine(): void {
    if (!isAtLineStart) write("\n");
    isAtLineStart = true;
  }

  /** What can be written now: with others at work, whole lines. */
  function takeReady(step: number, { stream, text }: OutputChunk, isAlone: boolean): string {
    const key = `${step} ${stream}`;
    const all = (held.get(key) ?? "") + text;
    held.delete(key);
    const end = isAlone ? all.length : all.lastIndexOf("\n") + 1;
    const rest = all.slice(end);
    if (rest.length > maxHeld) return all;
    if (rest !== "") held.set(key, rest);
    return all.slice(0, end);
  }

  function print(step: number, { stream, text }: OutputChunk, label: string, isRest: boolean): void {
    if (text === "") return;
    if (speaker?.step !== step || isRest) speaker = { step, announced: new Set() };
    const { announced } = speaker;
    // Standard error behind `stdout:` needs no header of its own: it would come again at every change.
    if (!announced.has(stream) && !(stream === "stderr" && announced.has("stdout"))) {
      endLine();
      announce(stream, label);
    }
    announced.add(stream);
    write(text);
    isAtLineStart = text.endsWith("\n");
  }

  return {
    endLine,
    show: (step, chunk, label, isRest = false) =>
      print(step, { ...chunk, text: takeReady(step, chunk, label === "") }, label, isRest),
    end(step, label) {
      for (const stream of ["stdout", "stderr"] as const)
        print(step, { stream, text: takeReady(step, { stream, text: "" }, true) }, label, false);
      if (speaker?.step === step) speaker = undefined;
      endLine();
    },
  };
}
