import type { Clock } from "../../clock.ts";
import type { OutputChunk } from "../../service/service.ts";

/** Shows output of several stages: whole lines with their step's label, in the order in which lines end. */
interface LabelledOutput {
  show(step: number, chunk: OutputChunk, label: string): void;
  /** Shows the rest of a step's last lines when its command has ended. */
  end(step: number): void;
  /** Ends an unfinished line, so that the log continues on a new one. */
  endLine(): void;
  /** Shows the rest of all lines. */
  close(): void;
}

interface LabelledOutputOptions {
  write: (text: string) => void;
  clock: Clock;
  /** True while more than one step runs. */
  isShared: () => boolean;
}

/** An unfinished line, such as a prompt, is shown after this time if no other step runs. */
const maxHoldMilliseconds = 500;
/** A longer line is shown before its end: a progress bar that is redrawn by carriage returns is one endless line. */
const maxHeld = 4096;

interface HeldLine {
  label: string;
  text: string;
  since: number;
}

export function createLabelledOutput({ write, clock, isShared }: LabelledOutputOptions): LabelledOutput {
  /** The beginnings of lines, by step and stream. */
  const held = new Map<string, HeldLine>();
  const closing = new AbortController();
  let isWaiting = false;
  /** The line written last, if it is unfinished. */
  let open: { key: string; endsInReturn: boolean } | undefined;

  function endLine(): void {
    if (open !== undefined) write("\n");
    open = undefined;
  }

  function print(key: string, label: string, text: string): void {
    if (open?.key !== key) endLine();
    const isAtStart = open === undefined || (open.endsInReturn && !text.startsWith("\n"));
    write(`${isAtStart ? label : ""}${labelLines(text, label)}`);
    open = text.endsWith("\n") ? undefined : { key, endsInReturn: text.endsWith("\r") };
  }

  function flush(key: string): void {
    const line = held.get(key);
    held.delete(key);
    if (line !== undefined) print(key, line.label, line.text);
  }

  async function waitAndFlush(): Promise<void> {
    isWaiting = true;
    while (held.size > 0) {
      await clock.sleep(maxHoldMilliseconds, closing.signal);
      const isDue = (since: number) => since <= clock.now() - maxHoldMilliseconds;
      for (const [key, { since }] of [...held]) if (isDue(since) && !isShared()) flush(key);
    }
    isWaiting = false;
  }

  return {
    endLine,
    show(step, { stream, text }, label) {
      const key = keyOf(step, stream);
      const all = (held.get(key)?.text ?? "") + text;
      held.delete(key);
      const end = all.lastIndexOf("\n") + 1;
      if (end > 0) print(key, label, all.slice(0, end));
      const rest = all.slice(end);
      if (rest === "") return;
      if (open?.key === key || rest.length > maxHeld) return print(key, label, rest);
      held.set(key, { label, text: rest, since: clock.now() });
      // It rejects only when the output is closed.
      if (!isWaiting) waitAndFlush().catch(() => undefined);
    },
    end(step) {
      for (const stream of ["stdout", "stderr"] as const) flush(keyOf(step, stream));
      endLine();
    },
    close() {
      closing.abort();
      for (const key of [...held.keys()]) flush(key);
      endLine();
    },
  };
}

function keyOf(step: number, stream: OutputChunk["stream"]): string {
  return `${step} ${stream}`;
}

/** Adds the label to each line, and after each carriage return, since text after it overwrites the label. */
function labelLines(text: string, label: string): string {
  return text.replace(/\n(?!$)|\r(?!\n|$)/g, (end) => end + label);
}
