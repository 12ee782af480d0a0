/** The machine's git, passed to a build by the command line. */
export interface GitProgram {
  /**
   * Runs it to its end. Rejects with a BoughError if it is not installed, does not end in time, or prints far too much. The
   * caller checks the exit code.
   */
  run(args: readonly string[], run: GitRun): Promise<GitEnd>;
  /** Makes an empty directory, whose disposal deletes it with its contents. */
  makeDirectory(): Promise<TemporaryDirectory>;
}

interface GitRun {
  /** Variables in addition to those that every program of this machine needs. */
  environment: Readonly<Record<string, string>>;
  /** The maximum size of a file that it writes, in bytes. */
  maxFileBytes: number;
  seconds: number;
  signal: AbortSignal;
}

export interface GitEnd {
  status: number;
  stdout: string;
  stderr: string;
}

interface TemporaryDirectory extends Disposable {
  path: string;
}
