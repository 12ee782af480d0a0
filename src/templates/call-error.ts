/** A function of a template refuses its arguments. The message gets the function's name and place where it is called. */
export class CallError extends Error {
  override readonly name = "CallError";
}
