import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { BoughError } from "../../errors.ts";
import { readOptional } from "../../open-for-reading.ts";
import { type ExtraHost, hostGateway, isHostName } from "../../service/wire/instance.ts";
import { asFields, type Fields, readString, refuse, refuseUnknown } from "../http/fields.ts";
import type { SandboxNetwork } from "./networks.ts";

/** Reads `extra_hosts` of a request. */
export function readExtraHosts({ extra_hosts: given }: Fields): ExtraHost[] {
  if (given == null) return [];
  if (!Array.isArray(given)) return refuse("extra_hosts", "must be a list");
  return given.map((value: unknown, index) => {
    const place = `extra_hosts[${index}]`;
    const fields = asFields(value, place);
    refuseUnknown(fields, ["host", "ip"], place);
    const [host, ip] = [readString(fields, "host"), readString(fields, "ip")];
    if (!isHostName(host)) refuse(`${place}.host`, "must be letters, digits, dots, hyphens and underscores");
    if (ip !== hostGateway && (isIP(ip) === 0 || ip.includes("%")))
      refuse(`${place}.ip`, `must be an IP address or ${hostGateway}`);
    return { host, ip };
  });
}

/**
 * Returns a sandbox's `/etc/hosts`: the lines of docker build's file and those of the request. This machine's own names for others
 * must not have an effect on an image.
 */
export function hostsFile(
  hostname: string,
  extraHosts: readonly ExtraHost[],
  network: Pick<SandboxNetwork, "kind">,
): string {
  return [
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    `127.0.1.1\t${hostname}`,
    ...extraHosts.map(({ host, ip }) => `${ip === hostGateway ? gatewayOf(network) : ip}\t${host}`),
    "",
  ].join("\n");
}

/**
 * Returns the address by which a command reaches what listens on this machine. A private network carries IPv4 only, and does not
 * lead to this machine's loopback, so it is an address of the machine itself, as in Podman.
 */
function gatewayOf({ kind }: Pick<SandboxNetwork, "kind">): string {
  if (kind === "host") return "127.0.0.1";
  const address = machineAddress(networkInterfaces(), readOptional("/proc/net/route"));
  if (address !== undefined) return address;
  throw new BoughError(
    `${hostGateway}: this machine has no IPv4 address but that of its loopback, which a private network does not reach`,
    { hint: "With --network host a command uses this machine's loopback." },
  );
}

/** Returns the IPv4 address of the interface that has the default route, else of another one. `routes`: `/proc/net/route`. */
export function machineAddress(
  interfaces: ReturnType<typeof networkInterfaces>,
  routes: string,
): string | undefined {
  const [, outward = ""] = /^(\S+)\t0{8}\t/m.exec(routes) ?? [];
  const all = [interfaces[outward], ...Object.values(interfaces)].flatMap((addresses) => addresses ?? []);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
}
