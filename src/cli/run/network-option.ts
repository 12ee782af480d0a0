import type { NetworkPolicy } from "../../builder/commands/network.ts";
import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import {
  type ExtraHost,
  hostGateway,
  isHostName,
  type NetworkMode,
  networkModes,
} from "../../service/wire/instance.ts";
import type { Values } from "../command-line/arguments.ts";
import type { ArgumentDefinition } from "../command-line/definitions.ts";
import { oneOf } from "../command-line/option-values.ts";

/** Defines `--network` with docker's values. `whose` network it is, for the help. */
export function networkDefinition(whose: string): ArgumentDefinition & { type: "string" } {
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
  return {
    mode,
    allowsHost: mode === "host" || allowed.includes("network.host"),
    hosts: readHosts(values.list("add-host")),
  };
}

/** Defines `--add-host` with docker's values. `whose`: what gets the hosts, for the help. */
export function hostsDefinition(whose: string): ArgumentDefinition & { type: "string"; multiple: true } {
  return {
    type: "string",
    valueHint: "NAME:IP",
    multiple: true,
    description: `A line in /etc/hosts of ${whose}, on bough's own engine; also NAME=IP; IP may be ${hostGateway}: the machine that runs it`,
  };
}

/** Reads `NAME:IP` or `NAME=IP`; an IPv6 address may be in brackets. As in buildx, a value may be a list with commas. */
export function readHosts(given: readonly string[]): ExtraHost[] {
  return given.flatMap((text) => text.split(",")).map(readHost);
}

function readHost(text: string): ExtraHost {
  const [, host = "", address = ""] = /^([^=:]*)[=:](.*)$/s.exec(text) ?? [];
  const ip = /^\[(.*)\]$/s.exec(address)?.[1] ?? address;
  // As in BuildKit, the name is written in small letters: capitals make no other name.
  if (isHostName(host) && (isAddress(ip) || ip === hostGateway)) return { host: host.toLowerCase(), ip };
  throw usageError(
    wording`${{ option: "add-host" }} takes NAME:IP, not ${JSON.stringify(text)}`,
    wording`For example: ${{ option: "add-host" }} mirror:10.0.0.5, ${{ option: "add-host" }} mirror=[2001:db8::5], ${{ option: "add-host" }} host.docker.internal:${hostGateway}.`,
  );
}

const byte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const version4 = new RegExp(`^${byte}(?:\\.${byte}){3}$`);

/** True for an IP address. node:net would take a quarter of the time that bough needs to start. */
function isAddress(text: string): boolean {
  return version4.test(text) || (/^[0-9a-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]/`));
}
