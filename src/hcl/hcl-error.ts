import type { Range } from "./source.ts";

/** An error in a file: of its syntax, or of an expression that is evaluated. The caller shows it with its place. */
export class HclError extends Error {
  override readonly name = "HclError";
  /** The place of the error, if it is known. */
  readonly range: Range | undefined;
  /** What would be right, as a sentence. */
  readonly hint: string | undefined;

  constructor(message: string, range?: Range, hint?: string) {
    super(message);
    this.range = range;
    this.hint = hint;
  }
}

/** Thrown when evaluating takes more than `Budget` allows. Unlike other errors, `try` and `can` do not catch it. */
export class HclLimitError extends HclError {}

/** Runs `action`. An HclError without a place gets `range`. */
export function located<Result>(range: Range, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    throw locate(error, range);
  }
}

export function locate(error: unknown, range: Range): unknown {
  if (!(error instanceof HclError) || error.range !== undefined) return error;
  const { message, hint } = error;
  return error instanceof HclLimitError
    ? new HclLimitError(message, range, hint)
    : new HclError(message, range, hint);
}
