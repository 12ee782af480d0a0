import type { Ran } from "../builder/events.ts";
import type { OutputChunk } from "../service/service.ts";

/** What a running command writes, passed on as it comes, between the lines of a log. */
export interface StreamedOutput {
  /** Both streams in the order in which they were written, behind one header for as long as it says enough. */
  show(chunk: OutputChunk): void;
  /** What of a command's output has not been shown: all of it on a service that says nothing before the end. */
  rest(ran: Ran): Ran;
  /** Ends a line that is still open, so that the log goes on with one of its own. */
  endLine(): void;
}

/** `write`: as is, behind the headers that `announce` prints. */
export function createStreamedOutput(
  write: (text: string) => void,
  announce: (stream: OutputChunk["stream"]) => void,
): StreamedOutput {
  let shown = { stdout: 0, stderr: 0 };
  let isAtLineStart = true;

  function endLine(): void {
    if (!isAtLineStart) write("\n");
    isAtLineStart = true;
  }

  return {
    endLine,

    show({ stream, text }) {
      if (text === "") return;
      // Standard error behind `stdout:` needs no header of its own: it would come again at every change.
      const isAnnounced = shown[stream] > 0 || (stream === "stderr" && shown.stdout > 0);
      if (!isAnnounced) {
        endLine();
        announce(stream);
      }
      shown[stream] += text.length;
      write(text);
      isAtLineStart = text.endsWith("\n");
    },

    rest(ran) {
      const { stdout, stderr } = ran;
      const before = shown;
      shown = { stdout: 0, stderr: 0 };
      endLine();
      return {
        ...ran,
        stdout: { ...stdout, text: stdout.text.slice(before.stdout) },
        stderr: { ...stderr, text: stderr.text.slice(before.stderr) },
      };
    },
  };
}
