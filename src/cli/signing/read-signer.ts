import { usageError } from "../../errors.ts";
import type { Log } from "../../terminal/log.ts";
import type { Invocation } from "../command-line/command.ts";
import type { Signers, SignImage } from "./open-signer.ts";
import { signIn } from "./sign-definition.ts";

/**
 * Reads `--sign` with its files. Throws a BoughError of kind `usage` for what can't be used, before anything is built.
 *
 * @param isPushed whether there is an image to sign
 */
export async function readSigner(
  invocation: Pick<Invocation, "values" | "runtime">,
  isPushed: boolean,
  log: Pick<Log, "info">,
  signers: Signers = new Map(),
): Promise<SignImage | undefined> {
  if (signIn(invocation.values) === undefined) return undefined;
  if (!isPushed) throw usageError("--sign needs an image that is pushed", "Give --push.");
  return (await import("./open-signer.ts")).openSigning(invocation, log, signers);
}
