/** A place: where a user stands when a promise is kept. It makes the command line, and what surrounds it. */
import type { Ended } from "../support/bough.ts";
import type { FileSpec } from "../support/files.ts";

export interface Place {
  /** What FROM names: an image with busybox. */
  readonly base: string;
  /** Makes a directory that whoever runs bough here may write to. */
  makeDirectory(files: Readonly<Record<string, FileSpec>>): string;
  /** Returns the name that the program here has for a path of this machine. */
  path(path: string): string;
  /** Starts bough in a directory. */
  start(directory: string, words: readonly string[], options?: StartOptions): Started;
  close(): Promise<void>;
}

export interface StartOptions {
  /** Standard input; by default what the place has. */
  stdin?: string | Uint8Array;
  environment?: Readonly<Record<string, string>>;
}

/** A running program. */
export interface Started {
  ended: Promise<Ended>;
  /** Resolves when standard error contains the text. Rejects if the program ends before. */
  untilStderr(text: string): Promise<void>;
  /** Does what Ctrl-C does. */
  interrupt(): void;
  /** Ends the program in a way that it can't notice. */
  kill(): void;
}

export async function run(
  place: Place,
  directory: string,
  words: readonly string[],
  options?: StartOptions,
): Promise<Ended> {
  return place.start(directory, words, options).ended;
}
