/** What a failure is called in JSON output and what the process exits with (README, "Exit codes"). */
export const exitCodes = {
  /** A build, a command or a call failed. */
  failed: 1,
  /** Bad usage, or a Dockerfile that does not parse. */
  usage: 2,
  /** Ended by Ctrl-C or SIGTERM, after the running operation was cancelled. */
  interrupted: 130,
} as const;

type FailureKind = keyof typeof exitCodes;

export interface BoughErrorOptions {
  kind?: FailureKind;
  /** What to do about it, as one sentence or one command line; printed on a line of its own. */
  hint?: string;
  cause?: unknown;
}

/**
 * The one error that a person gets to see: `message` says what went wrong and with which value, `hint` what to
 * do. Anything else that reaches `main` is a defect of bough's own.
 */
export class BoughError extends Error {
  override readonly name: string = "BoughError";
  readonly kind: FailureKind;
  readonly hint: string | undefined;

  constructor(message: string, options: BoughErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = options.kind ?? "failed";
    this.hint = options.hint;
  }

  get exitCode(): number {
    return exitCodes[this.kind];
  }
}

/** The text of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
