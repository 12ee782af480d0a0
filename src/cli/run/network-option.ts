import type { NetworkPolicy } from "../../builder/commands/network.ts";
import { type NetworkMode, networkModes } from "../../service/wire/instance.ts";
import { type ArgumentDefinition, oneOf, type Values } from "../command-line/arguments.ts";

/** `--network`, as docker spells it. `whose` network it is, for the help. */
export function networkDefinition(whose: string): ArgumentDefinition {
  return {
    type: "string",
    valueHint: networkModes.join("|"),
    completes: networkModes,
    description: `Network of ${whose}: none is a loopback alone, host the machine's own, loopback included`,
  };
}

/** Rejects what is not a mode. */
export function readNetworkMode(given: string | undefined): NetworkMode {
  return oneOf(given ?? "default", networkModes, "--network");
}

/** What `--allow` may name, as docker buildx spells it. */
export const entitlements = ["network.host"] as const;

/** `--network=host` allows what it gives to every RUN anyway. */
export function readNetworkPolicy(values: Values): NetworkPolicy {
  const mode = readNetworkMode(values.text("network"));
  const allowed = values.list("allow").map((given) => oneOf(given, entitlements, "--allow"));
  return { mode, allowsHost: mode === "host" || allowed.includes("network.host") };
}
