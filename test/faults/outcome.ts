import { messageOf } from "../../src/errors.ts";
import { NotFoundError, UnknownOutcomeError } from "../../src/service/http/errors.ts";

/** Patterns of messages with their kinds. The first match counts. */
const kinds: readonly [pattern: RegExp, kind: string][] = [
  [/ responded with (\d{3}) (?!and|without)/, "status $1"],
  [/connection refused/, "unreachable"],
  [/the connection was closed before the answer was complete/, "connection broken"],
  [/no answer within|no data received for|bytes? received in|accepted no data for/, "silence"],
  [/the response cannot be decompressed/, "compression broken"],
  [/not JSON|and an empty body/, "no JSON"],
  [/redirects to|follows redirects only/, "redirect refused"],
  [/redirects more than/, "redirects in a circle"],
  [/ responded with 2\d\d without/, "JSON of another shape"],
];

/** Does the work, and describes its outcome in a word or two. */
export async function classify(work: () => Promise<unknown>): Promise<{ error: unknown; outcome: string }> {
  try {
    const result = await work();
    return { error: undefined, outcome: result === false ? "not confirmed" : "ok" };
  } catch (error) {
    return { error, outcome: nameOf(error) };
  }
}

function nameOf(error: unknown): string {
  const message = messageOf(error);
  const found = kinds.find(([pattern]) => pattern.test(message));
  const kind = found === undefined ? `?? ${message}` : (message.match(found[0])?.[0].replace(...found) ?? "");
  if (error instanceof UnknownOutcomeError) return `unknown outcome (${kind})`;
  return error instanceof NotFoundError ? `not found (${kind})` : kind;
}
