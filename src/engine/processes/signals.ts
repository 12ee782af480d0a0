import { constants } from "node:os";
import { refuse } from "../http/fields.ts";

/** Returns a signal's number for `TERM`, `SIGTERM` or `15`. */
export function readSignal(text: string | undefined): number {
  if (text === undefined) return constants.signals.SIGKILL;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && number <= 64) return number;
  const name = `SIG${text.toUpperCase().replace(/^SIG/, "")}`;
  const signals: Readonly<Record<string, number>> = constants.signals;
  return (
    signals[name] ??
    refuse("signal", `must be a signal such as TERM, SIGKILL or 9, not ${JSON.stringify(text)}`)
  );
}

/** Returns the signal in an exit code of 128 plus its number, as runc and shells have it; -1: none. */
export function signalOf(exitCode: number): number {
  return exitCode > 128 && exitCode <= 128 + 64 ? exitCode - 128 : -1;
}
