/** The machine's git, as the command line gives it to a build. */
export interface GitProgram {
  /**
   * Runs it to its end. Rejects with a BoughError where it is not installed, does not end in time, or prints more than could
   * be meant; what it exits with is for the caller.
   */
  run(args: readonly string[], run: GitRun): Promise<GitEnd>;
  /** Makes an empty directory, which goes with all that is in it. */
  makeDirectory(): Promise<TemporaryDirectory>;
}

export interface GitRun {
  /** Variables beside those that any program of this machine needs. */
  environment: Readonly<Record<string, string>>;
  /** The most that one file may have that it writes, in bytes. */
  maxFileBytes: number;
  seconds: number;
  signal: AbortSignal;
}

export interface GitEnd {
  status: number;
  stdout: string;
  stderr: string;
}

export interface TemporaryDirectory extends Disposable {
  path: string;
}
