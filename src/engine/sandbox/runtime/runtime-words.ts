/** Why a command did not start: an error of the command itself (as a shell reports it), or of the sandbox. */
export type FailedStart =
  | { kind: "command"; exitCode: 1 | 126 | 127; message: string }
  | { kind: "sandbox"; message: string };

/** The messages of a runtime on a command's standard error when it can't start it. */
export interface RuntimeWords {
  /** Returns whether output that begins like this may be the runtime's. */
  mayBegin(held: Buffer): boolean;
  /** Explains an error of the runtime's log in runc's wording. */
  explain(error: string): FailedStart;
  /** Translates the message for a command that the kernel refuses to run, which is in no log; `undefined`: it is none. */
  translate(held: Buffer): Buffer | undefined;
}

export interface Start {
  /** The runtime's subcommand that starts it. */
  as: "run" | "exec";
  /** The first word of its command line. */
  program: string;
  /** Returns whether the runtime has recorded that the process runs. */
  hasStarted(): boolean;
}
