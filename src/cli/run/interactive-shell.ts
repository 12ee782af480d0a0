import { posix } from "node:path";
import { BoughError } from "../../errors.ts";

const shells: readonly string[] = ["sh", "ash", "bash", "dash", "fish", "ksh", "zsh"];
/** Options of shells that don't name anything to run. */
const idleOptions = /^(-[il]+|--login|--interactive)$/;

/**
 * Throws if the command is a shell at a terminal with nothing to run: without a terminal of its own it would end immediately with
 * exit code 0, which is not what the user expects.
 */
export function refuseInteractiveShell(words: readonly string[], isTerminal: boolean): void {
  const [program = "", ...args] = words;
  const isIdle = args.every((arg) => idleOptions.test(arg));
  if (!isTerminal || !isIdle || !shells.includes(posix.basename(program))) return;
  throw new BoughError(`without -it ${program} has no terminal, and would end immediately`, {
    kind: "usage",
    hint: `bough run -it gives it this one, and so does \`bough shell\`. Or give it something to do: bough run -- ${program} -c 'COMMAND'`,
  });
}
