import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import {
  type ExtraHost,
  hostGateway,
  isHostName,
  type NetworkMode,
  networkModes,
} from "../../service/wire/instance.ts";
import type { ArgumentDefinition } from "../command-line/definitions.ts";
import { oneOf } from "../command-line/option-values.ts";

/** Defines `--network` with docker's values. `whose`: the owner of the network, for the help. */
export function networkDefinition(whose: string): ArgumentDefinition & { type: "string" } {
  return {
    type: "string",
    valueHint: networkModes.join("|"),
    completes: networkModes,
    description: `Network of ${whose}: none is only a loopback, host is the machine's own, including its loopback`,
  };
}

export function parseNetworkMode(text: string): NetworkMode {
  return oneOf(text, networkModes, "--network");
}

/** Values of `--allow`, as docker buildx spells them. */
export const entitlements = ["network.host"] as const;

export function parseEntitlements(given: readonly string[]): (typeof entitlements)[number][] {
  return given.map((text) => oneOf(text, entitlements, "--allow"));
}

/** Defines `--add-host` with docker's values. `whose`: the owner of `/etc/hosts`, for the help. */
export function hostsDefinition(whose: string): ArgumentDefinition & { type: "string"; multiple: true } {
  return {
    type: "string",
    valueHint: "NAME:IP",
    multiple: true,
    description: `A line in /etc/hosts of ${whose}, on bough's own engine; also NAME=IP; IP may be ${hostGateway}: the machine that runs it`,
  };
}

/** Parses `NAME:IP` or `NAME=IP`. As in buildx, a value may be a list with commas. */
export function parseHosts(given: readonly string[]): ExtraHost[] {
  return given
    .flatMap((text) => text.split(","))
    .map((text) => {
      const [, host = "", address = ""] = /^([^=:]*)[=:](.*)$/s.exec(text) ?? [];
      return extraHost(host, address, text);
    });
}

/** Checks a host. An IPv6 address may be in brackets. `given`: how it was written, for messages. */
export function extraHost(host: string, address: string, given = `${host}=${address}`): ExtraHost {
  const ip = /^\[(.*)\]$/s.exec(address)?.[1] ?? address;
  // As in BuildKit, the name is written in lower case.
  if (isHostName(host) && (isAddress(ip) || ip === hostGateway)) return { host: host.toLowerCase(), ip };
  throw usageError(
    wording`${{ option: "add-host" }} takes NAME:IP, not ${JSON.stringify(given)}`,
    wording`For example: ${{ option: "add-host" }} mirror:10.0.0.5, ${{ option: "add-host" }} mirror=[2001:db8::5], ${{ option: "add-host" }} host.docker.internal:${hostGateway}.`,
  );
}

const byte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const version4 = new RegExp(`^${byte}(?:\\.${byte}){3}$`);

/** True for an IP address. Loading node:net instead would take a quarter of the time that bough needs to start. */
function isAddress(text: string): boolean {
  return version4.test(text) || (/^[0-9a-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]/`));
}
