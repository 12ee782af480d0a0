import type { OutputChunk } from "../../service/service.ts";

type StreamName = OutputChunk["stream"];

/** What running commands write, passed on as it comes, between the lines of a log. */
interface StreamedOutput {
  /**
   * Both streams of a step in the order in which they were written, behind one header for as long as it says enough. `isRest`: it
   * did not come in any order.
   */
  show(step: number, chunk: OutputChunk, isRest?: boolean): void;
  /** A step's command is over. */
  end(step: number): void;
  /** Ends a line that is still open, so that the log goes on with one of its own. */
  endLine(): void;
}

/** `write`: as is, behind the headers that `announce` prints. */
export function createStreamedOutput(
  write: (text: string) => void,
  announce: (stream: StreamName) => void,
): StreamedOutput {
  /** Whose output was written last, and of which streams a header has told. */
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
      // Standard error behind `stdout:` needs no header of its own: it would come again at every change.
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
