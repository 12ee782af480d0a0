import type { Clock } from "../../clock.ts";
import type { OutputChunk } from "../../service/service.ts";

/** What commands of several stages write: whole lines, each behind its step's label, in the order in which they end. */
interface LabelledOutput {
  show(step: number, chunk: OutputChunk, label: string): void;
  /** A step's command is over: whatever is left of its last lines is shown. */
  end(step: number): void;
  /** Ends a line that is still open, so that the log goes on with one of its own. */
  endLine(): void;
  /** Shows what is left of all lines. */
  close(): void;
}

interface LabelledOutputOptions {
  write: (text: string) => void;
  clock: Clock;
  /** True while more than one step is at work. */
  isShared: () => boolean;
}

/** A line without an end, as a question is, is shown after this time where no other step can break it. */
const patienceMilliseconds = 500;
/** A longer line is shown before its end: a progress bar that is redrawn by carriage returns is one line for ever. */
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
  /** The line that was written last, if it has no end yet. */
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
      await clock.sleep(patienceMilliseconds, closing.signal);
      const isDue = (since: number) => since <= clock.now() - patienceMilliseconds;
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
      // It ends with the closing, and with nothing else.
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

/** What a carriage return begins anew has the label, too: it would be overwritten. */
function labelLines(text: string, label: string): string {
  return text.replace(/\n(?!$)|\r(?!\n|$)/g, (end) => end + label);
}
