import type { NetworkPolicy } from "../../builder/commands/network.ts";
import { type NetworkMode, networkModes } from "../../service/wire/instance.ts";
import type { ArgumentDefinition, Values } from "../command-line/arguments.ts";
import { oneOf } from "../command-line/option-values.ts";

/** Defines `--network` with docker's values. `whose` network it is, for the help. */
export function networkDefinition(whose: string): ArgumentDefinition {
  return {
    type: "string",
    valueHint: networkModes.join("|"),
    completes: networkModes,
    description: `Network of ${whose}: none is only a loopback, host is the machine's own, including its loopback`,
  };
}

/** Throws if the text is not a mode. */
export function readNetworkMode(given: string | undefined): NetworkMode {
  return oneOf(given ?? "default", networkModes, "--network");
}

/** Values of `--allow`, as docker buildx spells them. */
export const entitlements = ["network.host"] as const;

/** `--network=host` gives every RUN the host's network, and so allows it, too. */
export function readNetworkPolicy(values: Values): NetworkPolicy {
  const mode = readNetworkMode(values.text("network"));
  const allowed = values.list("allow").map((given) => oneOf(given, entitlements, "--allow"));
  return { mode, allowsHost: mode === "host" || allowed.includes("network.host") };
}
