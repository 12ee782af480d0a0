import { defaultPlatform, parsePlatform } from "../../builder/bases/platform.ts";
import type { AssumedService } from "../../check/dry-world.ts";
import { BoughError } from "../../errors.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import type { Runtime } from "../process/runtime.ts";

/** Returns the platform and features of the service that a build would use, as far as they are known without a request. */
export async function assumeService(runtime: Runtime, globals: GlobalOptions): Promise<AssumedService> {
  if (!(await usesEngine(runtime, globals)))
    return {
      platform: parsePlatform(defaultPlatform),
      isCertain: false,
      startsFromScratch: false,
      mounts: { secrets: false, agents: false },
    };
  const { machineArchitecture } = await import("../../engine/system/machine.ts");
  return {
    platform: parsePlatform(`linux/${machineArchitecture()}`),
    isCertain: true,
    startsFromScratch: true,
    mounts: { secrets: true, agents: true },
  };
}

async function usesEngine({ environment }: Runtime, flags: GlobalOptions): Promise<boolean> {
  const { chooseService } = await import("../../service/profiles/profile.ts");
  const { readProfileFiles } = await import("../../service/profiles/profile-files.ts");
  try {
    return chooseService({ flags, environment, files: readProfileFiles(environment) }).kind === "embedded";
  } catch (error) {
    // The build itself reports an unusable profile.
    if (error instanceof BoughError) return false;
    throw error;
  }
}
