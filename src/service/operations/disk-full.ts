import type { OperationOutcome, OutputChunk } from "../service.ts";

/** strerror(3) of ENOSPC, in glibc and musl. */
const diskFullText = "No space left on device";

/** Watches a command's output for a program that says that it found no space left. */
export interface DiskFullWatch {
  see(chunk: OutputChunk): void;
  saysDiskFull(): boolean;
}

export function watchForDiskFull(): DiskFullWatch {
  const ends = { stdout: "", stderr: "" };
  let isFull = false;
  return {
    see({ stream, text }) {
      // A chunk may end in the middle of it.
      const seen = ends[stream] + text;
      isFull ||= seen.includes(diskFullText);
      ends[stream] = seen.slice(1 - diskFullText.length);
    },
    saysDiskFull: () => isFull,
  };
}

/** The same of all that it has written. */
export function saysDiskFull({ stdout, stderr }: Pick<OperationOutcome, "stdout" | "stderr">): boolean {
  return [stdout, stderr].some(({ text }) => text.includes(diskFullText));
}
