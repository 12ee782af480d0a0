import { usageError } from "../../errors.ts";
import type { Log } from "../../terminal/log.ts";
import type { Runtime } from "../process/runtime.ts";
import type { Signers, SignImage } from "./open-signer.ts";
import type { SignRequest } from "./sign-option.ts";

/**
 * Reads the files that `--sign` names. Throws a BoughError of kind `usage` for what can't be used, before anything is built.
 *
 * @param isPushed whether there is an image to sign
 */
export async function readSigner(
  request: SignRequest | undefined,
  isPushed: boolean,
  runtime: Runtime,
  log: Pick<Log, "info">,
  signers: Signers = new Map(),
): Promise<SignImage | undefined> {
  if (request === undefined) return undefined;
  if (!isPushed) throw usageError("--sign needs an image that is pushed", "Give --push.");
  return (await import("./open-signer.ts")).openSigning(request, runtime, log, signers);
}
