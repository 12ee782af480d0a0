import type { OperationOutcome, OutputChunk } from "../service.ts";

/** strerror(3) of ENOSPC, in glibc and musl. */
const diskFullText = "No space left on device";

/** Detects in a command's output that a program found no space left. */
interface DiskFullWatch {
  see(chunk: OutputChunk): void;
  saysDiskFull(): boolean;
}

export function watchForDiskFull(): DiskFullWatch {
  const ends = { stdout: "", stderr: "" };
  let isFull = false;
  return {
    see({ stream, text }) {
      // The text may be split between two chunks.
      const seen = ends[stream] + text;
      isFull ||= seen.includes(diskFullText);
      ends[stream] = seen.slice(1 - diskFullText.length);
    },
    saysDiskFull: () => isFull,
  };
}

/** Detects the same in the complete output. */
export function saysDiskFull({ stdout, stderr }: Pick<OperationOutcome, "stdout" | "stderr">): boolean {
  return [stdout, stderr].some(({ text }) => text.includes(diskFullText));
}
