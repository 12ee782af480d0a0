import { type Message, wording } from "./messages/wording.ts";

/** The kinds of failure, as named in JSON output, with their exit codes (README, "Exit codes"). */
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
  /** The next step for the user, as one sentence or one command line; printed on its own line. */
  hint?: Message | undefined;
  cause?: unknown;
}

/**
 * The only kind of error for users. `message` says what is wrong and with which value, `hint` what to do. Any other error that
 * reaches `main` is a defect in bough.
 */
export class BoughError extends Error {
  override readonly name: string = "BoughError";
  readonly kind: FailureKind;
  readonly hint: Message | undefined;
  /** The message as it was given. `message` has it in the words of the command line. */
  readonly wording: Message;

  constructor(message: Message, options: BoughErrorOptions = {}) {
    super(String(message), options.cause === undefined ? undefined : { cause: options.cause });
    this.wording = message;
    this.kind = options.kind ?? "failed";
    this.hint = options.hint;
  }

  get exitCode(): number {
    return exitCodes[this.kind];
  }
}

/** A command line that can't be parsed. Docker's command line has an exit code of its own for it. */
export class CommandLineError extends BoughError {
  override readonly name: string = "CommandLineError";

  constructor(message: Message, hint?: Message) {
    super(message, { kind: "usage", hint });
  }
}

/** The disk of the service, or of the embedded engine, is full. */
export class DiskFullError extends BoughError {
  override readonly name: string = "DiskFullError";
}

/** Returns the error of a command line or profile that is used wrongly. */
export function usageError(message: Message, hint?: Message): BoughError {
  return new BoughError(message, { kind: "usage", hint });
}

/** Returns a message with the hint as a further sentence. Another program's message may already end with a full stop. */
export function withHint({ message, hint }: { message: Message; hint?: Message | undefined }): Message {
  const end = /[.!?]$/.test(String(message)) ? "" : ".";
  return hint === undefined ? message : wording`${message}${end}${wording` ${hint}`}`;
}

/** Returns the message of anything that was thrown. */
export function messageOf(error: unknown): string {
  const cause = primaryOf(error);
  return cause instanceof Error ? cause.message : String(cause);
}

/** Returns the error that came first. If a cleanup by `using` fails after it, the later error has it as `suppressed`, and no message. */
export function primaryOf(error: unknown): unknown {
  return error instanceof Error && "suppressed" in error ? primaryOf(error.suppressed) : error;
}

/** Returns the first error of a class among an error and its causes. */
export function causeOf<Cause extends Error>(
  error: unknown,
  type: abstract new (...args: never[]) => Cause,
): Cause | undefined {
  if (error instanceof type) return error;
  return error instanceof Error ? causeOf(error.cause, type) : undefined;
}

/** Returns a BoughError with a prefix, such as a target or a platform, before its message. Other errors stay as they are. */
export function withPrefix(error: unknown, prefix: string): unknown {
  if (!(error instanceof BoughError) || error.kind === "interrupted") return error;
  const { kind, hint } = error;
  return new BoughError(wording`${prefix}: ${error.wording}`, { kind, hint, cause: error });
}
