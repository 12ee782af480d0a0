import type { Capabilities } from "../../service/service.ts";
import type { accountOf } from "../account.ts";

/** Returns the capabilities of the engine for a client in this process, which has all of them. */
export function createCapabilities(account: () => ReturnType<typeof accountOf>): Capabilities {
  return {
    lacks: () => false,
    has: () => true,
    platform: async () => account().platform,
    takesUserNumbers: async () => true,
    maxTimeoutSeconds: async () => account().maxTimeoutSeconds,
    extensions: async () => new Set(account().extensions),
  };
}
