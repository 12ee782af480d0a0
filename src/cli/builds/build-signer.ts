import type { Log } from "../../terminal/log.ts";
import type { Invocation } from "../command-line/command.ts";
import { type BuildOutput, isPushed } from "../export/build-outputs.ts";
import type { Signers, SignImage } from "../signing/open-signer.ts";

/** Reads `--sign` of a build. Throws a BoughError of kind `usage` for what can't be used. */
export async function readBuildSigner(
  invocation: Pick<Invocation, "values" | "runtime">,
  outputs: readonly BuildOutput[],
  log: Pick<Log, "info">,
  signers: Signers | undefined,
): Promise<SignImage | undefined> {
  if (invocation.values.text("sign") === undefined) return undefined;
  const { readSigner } = await import("../signing/open-signer.ts");
  return readSigner(invocation, isPushed(outputs), log, signers);
}
