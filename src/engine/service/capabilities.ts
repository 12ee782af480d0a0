import type { Capabilities } from "../../service/service.ts";
import { accountOf } from "../account.ts";
import type { EngineState } from "../state.ts";

/** What the engine can do for a client in this process: a constant. */
export function createCapabilities(state: EngineState): Capabilities {
  let account: ReturnType<typeof accountOf> | undefined;
  const known = () => {
    account ??= accountOf(state);
    return account;
  };
  return {
    lacks: () => false,
    has: () => true,
    platform: async () => known().platform,
    takesUserNumbers: async () => true,
    maxTimeoutSeconds: async () => known().maxTimeoutSeconds,
    extensions: async () => new Set(known().extensions),
  };
}
