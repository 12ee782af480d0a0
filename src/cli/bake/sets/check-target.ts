import type { Log } from "../../../terminal/log.ts";
import { readSharing } from "../../builds/build-cache.ts";
import { chooseServices } from "../../builds/build-services.ts";
import { readCheckedDockerfile } from "../../builds/checked-dockerfile.ts";
import { readBuildInputs } from "../../builds/inputs.ts";
import { readBuildOptions } from "../../builds/options/build-options.ts";
import type { BuildsTogether } from "../../builds/prepare-build.ts";
import { requireInputsKept } from "../../builds/result-files.ts";
import { isPushed } from "../../export/build-outputs.ts";
import { readSigner } from "../../signing/read-signer.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { inTarget, withTarget } from "../target-error.ts";
import { isAddress } from "../target-names.ts";
import { buildOf, placeholder, reasonAgainstCache } from "../target-request.ts";

/** Warns of caches that are not used. */
export function warnOfCaches(
  { name, fields }: ResolvedTarget,
  { environment }: BakeInvocation["runtime"],
  log: Pick<Log, "warn">,
): void {
  for (const field of ["cache-from", "cache-to"] as const)
    for (const entry of fields[field] ?? []) {
      const reason = reasonAgainstCache(entry, environment);
      if (reason !== undefined) log.warn(`target ${name}: ${field}: ${reason}: it is left out`);
    }
}

/** Throws for errors of a target that can be found before anything is run. */
export async function checkTarget(
  target: ResolvedTarget,
  log: Log,
  signers: BuildsTogether["signers"],
  invocation: BakeInvocation,
): Promise<void> {
  const own = buildOf(target, () => placeholder, invocation);
  const { outputs } = inTarget(target, () => {
    requireInputsKept(own);
    chooseServices(own, own.options.platform ?? []);
    return readBuildOptions(own);
  });
  // Contexts at an address are fetched when the target is built, unless they came with the bake file.
  if (target.remote?.context === undefined && isAddress(target.fields.context)) return;
  try {
    using inputs = await readBuildInputs(own, {
      log: { ...log, warn: () => undefined },
      keepsContext: false,
    });
    await readCheckedDockerfile(inputs, own);
    await inputs.secrets.load();
    await readSharing(own, inputs);
    await readSigner(own.options.sign, isPushed(outputs), own.runtime, log, signers);
  } catch (error) {
    throw withTarget(error, target);
  }
}
