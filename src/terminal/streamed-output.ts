import type { Ran } from "../builder/events.ts";
import type { OutputChunk } from "../service/service.ts";

/** What running commands write, passed on as it comes, between the lines of a log. */
export interface StreamedOutput {
  /**
   * Both streams of a step in the order in which they were written, behind one header for as long as it says enough.
   * `label`: not empty where other steps are at work, too; then no line is broken by one of theirs.
   */
  show(step: number, chunk: OutputChunk, label: string): void;
  /** What of a step's output has not been shown: all of it on a service that says nothing before the end. */
  rest<Output extends Pick<Ran, "stdout" | "stderr">>(step: number, ran: Output): Output;
  /** Ends a line that is still open, so that the log goes on with one of its own. */
  endLine(): void;
}

/** Per stream: characters. */
type Counts = Record<OutputChunk["stream"], number>;

/** A progress bar that is redrawn by carriage returns is one line for ever. */
const maxHeld = 4096;

/** `write`: as is, behind the headers that `announce` prints. */
export function createStreamedOutput(
  write: (text: string) => void,
  announce: (stream: OutputChunk["stream"], label: string) => void,
): StreamedOutput {
  const shown = new Map<number, Counts>();
  /** Lines that have not ended, of steps that are not alone. */
  const held = new Map<string, string>();
  /** Whose output was written last, and what the headers before it name. */
  let speaker: { step: number; announced: Counts } | undefined;
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

  return {
    endLine,

    show(step, chunk, label) {
      const { stream } = chunk;
      const text = takeReady(step, chunk, label === "");
      if (text === "") return;
      const counts = shown.get(step) ?? { stdout: 0, stderr: 0 };
      shown.set(step, counts);
      if (speaker?.step !== step) speaker = { step, announced: { stdout: 0, stderr: 0 } };
      const { announced } = speaker;
      // Standard error behind `stdout:` needs no header of its own: it would come again at every change.
      const isAnnounced = announced[stream] > 0 || (stream === "stderr" && announced.stdout > 0);
      if (!isAnnounced) {
        endLine();
        announce(stream, label);
      }
      announced[stream] += text.length;
      counts[stream] += text.length;
      write(text);
      isAtLineStart = text.endsWith("\n");
    },

    rest(step, ran) {
      const { stdout, stderr } = ran;
      const before = shown.get(step) ?? { stdout: 0, stderr: 0 };
      shown.delete(step);
      for (const stream of ["stdout", "stderr"]) held.delete(`${step} ${stream}`);
      if (speaker?.step === step) speaker = undefined;
      endLine();
      return {
        ...ran,
        stdout: { ...stdout, text: stdout.text.slice(before.stdout) },
        stderr: { ...stderr, text: stderr.text.slice(before.stderr) },
      };
    },
  };
}
