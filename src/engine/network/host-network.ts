import { BoughError } from "../../errors.ts";
import { readOptional } from "../system/optional-file.ts";

/** Files that describe the machine's network. */
interface HostNetwork {
  /** `/etc/resolv.conf` */
  resolvConf: string;
  /** `/proc/net/route`: IPv4 routes, addresses in hexadecimal in the machine's byte order. */
  routes: string;
  /** `/proc/net/ipv6_route` */
  ipv6Routes: string;
}

/** Two networks, `a.b.c.0/24` each, given as `a.b.c`. */
export interface PrivateAddresses {
  /** The network of the namespace that sandboxes are in. */
  inner: string;
  /** The network of the namespace between that one and the machine's. */
  outer: string;
}

/** The first is slirp4netns's default, 10.0.3.0 is next to it, and the others are seldom in use. */
const candidates = ["10.0.2", "10.0.3", "172.29.251", "172.29.252", "192.168.251", "192.168.252"];

/** Returns "" if there is none. */
export function readResolvConf(): string {
  return readOptional("/etc/resolv.conf");
}

/** Returns the sandbox's `resolv.conf`: the machine's search domains and options (resolv.conf(5)) with another name server. */
export function privateResolvConf(machine: string, nameServer: string): string {
  const kept = machine.split("\n").filter((line) => /^(search|domain|options)[ \t]/.test(line));
  return [`nameserver ${nameServer}`, ...kept, ""].join("\n");
}

export function readHostNetwork(): HostNetwork {
  return {
    resolvConf: readResolvConf(),
    routes: readOptional("/proc/net/route"),
    ipv6Routes: readOptional("/proc/net/ipv6_route"),
  };
}

/**
 * Returns addresses that hide no network which the machine reaches. Throws if a private network would reach nothing, since it
 * carries IPv4 only.
 */
export function findAddresses(machine: HostNetwork): PrivateAddresses {
  const routes = parseRoutes(machine.routes);
  const nameServers = Array.from(
    machine.resolvConf.matchAll(/^nameserver[ \t]+(\S+)/gm),
    ([, address]) => address,
  );
  if (nameServers.length > 0 && nameServers.every((address) => address?.includes(":"))) {
    throw new BoughError("a private network needs a name server with an IPv4 address in /etc/resolv.conf");
  }
  if (!routes.some(isDefault) && hasDefaultRoute(machine.ipv6Routes)) {
    throw new BoughError(
      "a private network carries IPv4 only, and this machine has a default route for IPv6 only",
    );
  }
  const isFree = (network: string) => !routes.some((route) => !isDefault(route) && overlaps(route, network));
  const free = candidates.filter(isFree);
  const [outer = "10.0.2", inner = "10.0.3"] = free.length < 2 ? candidates : free;
  return { inner, outer };
}

interface Route {
  destination: number;
  mask: number;
}

function parseRoutes(table: string): Route[] {
  return table
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields.length >= 8)
    .map((fields) => ({ destination: parseAddress(fields[1]), mask: parseAddress(fields[7]) }));
}

/** `0202000A` is 10.0.2.2: all machines that bough runs on are little-endian. */
function parseAddress(text = ""): number {
  return Buffer.from(text.padStart(8, "0"), "hex").readUInt32LE();
}

/** A VPN may split the default route into two routes with a one-bit mask. Neither means that an address is in use. */
function isDefault({ mask }: Route): boolean {
  return mask < 0xff00_0000;
}

function overlaps({ destination, mask }: Route, network: string): boolean {
  const [a = 0, b = 0, c = 0] = network.split(".").map(Number);
  const address = ((a << 24) | (b << 16) | (c << 8)) >>> 0;
  const shared = mask & 0xffff_ff00;
  return ((address ^ destination) & shared) === 0;
}

/** Unreachable networks are routes on the loopback interface. */
function hasDefaultRoute(ipv6Routes: string): boolean {
  return ipv6Routes.split("\n").some((line) => /^0{32} 00 /.test(line) && !/\slo$/.test(line));
}
