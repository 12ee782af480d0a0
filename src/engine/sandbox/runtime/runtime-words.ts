/** Why there was no command to run: its own fault (as a shell reports it), or the sandbox's. */
export type FailedStart =
  | { kind: "command"; exitCode: 1 | 126 | 127; message: string }
  | { kind: "sandbox"; message: string };

/** What a runtime says on a command's standard error when it can't start it. */
export interface RuntimeWords {
  /** Returns whether output that begins like this can be the runtime's. */
  mayBegin(held: Buffer): boolean;
  /** The words of an error in its log, in what runc says of it. */
  explain(error: string): FailedStart;
  /** What a command says that its kernel refuses to run, which is in no log; `undefined`: the output is the command's own. */
  translate(held: Buffer): Buffer | undefined;
}

export interface Start {
  /** How it is started. */
  as: "run" | "exec";
  /** The first word of its command line. */
  program: string;
  /** Returns whether the runtime has noted that it runs. */
  hasStarted(): boolean;
}
