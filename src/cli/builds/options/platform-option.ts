import { platformOf } from "../../../builder/bases/base.ts";
import type { ServiceSupport } from "../../../builder/service-support.ts";
import {
  formatPlatform,
  isSamePlatform,
  type Platform,
  parsePlatform,
} from "../../../builder/state/platform.ts";
import { usageError } from "../../../errors.ts";

/** Reads `--platform`. An image has one platform: that of the service, which runs its commands. */
export function readPlatform(text: string | undefined): Platform | undefined {
  if (text === undefined) return undefined;
  if (!text.includes(",")) return parsePlatform(text);
  throw usageError(
    `--platform takes one platform, not ${JSON.stringify(text)}`,
    "Build once on a service of each platform.",
  );
}

/** Rejects if `wanted` is not the platform that the service runs. */
export async function requirePlatform(
  wanted: Platform | undefined,
  supports: Pick<ServiceSupport, "platform">,
): Promise<void> {
  if (wanted !== undefined) requireSamePlatform(wanted, await platformOf(supports));
}

export function requireSamePlatform(wanted: Platform, available: Platform): void {
  if (isSamePlatform(wanted, available)) return;
  throw usageError(
    `--platform ${formatPlatform(wanted)}: the service runs only ${formatPlatform(available)}`,
    "Leave --platform out, or build on a service of that platform.",
  );
}
