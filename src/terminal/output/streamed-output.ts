import type { OutputChunk } from "../../service/service.ts";

type StreamName = OutputChunk["stream"];

/** Shows output of running commands as it comes, between log lines. */
interface StreamedOutput {
  /**
   * Shows both streams of a step in the order of writing, after one header if possible. `isRest`: the output came after the
   * command's end, so its order is unknown.
   */
  show(step: number, chunk: OutputChunk, isRest?: boolean): void;
  /** Ends a step's output. */
  end(step: number): void;
  /** Ends an unfinished line, so that the log continues on a new one. */
  endLine(): void;
}

/** Creates a display that writes output unchanged, after the headers that `announce` prints. */
export function createStreamedOutput(
  write: (text: string) => void,
  announce: (stream: StreamName) => void,
): StreamedOutput {
  /** The step whose output was written last, and its streams that are announced. */
  let speaker: { step: number; announced: Set<StreamName> } | undefined;
  let isAtLineStart = true;

  function endLine(): void {
    if (!isAtLineStart) write("\n");
    isAtLineStart = true;
  }

  return {
    endLine,
    show(step, { stream, text }, isRest = false) {
      if (text === "") return;
      if (speaker?.step !== step || isRest) speaker = { step, announced: new Set() };
      const { announced } = speaker;
      // Standard error after `stdout:` gets no header, which would be repeated at every change.
      if (!announced.has(stream) && !(stream === "stderr" && announced.has("stdout"))) {
        endLine();
        announce(stream);
      }
      announced.add(stream);
      write(text);
      isAtLineStart = text.endsWith("\n");
    },
    end(step) {
      if (speaker?.step === step) speaker = undefined;
      endLine();
    },
  };
}
