import { BoughError } from "../../errors.ts";
import { readOptional } from "../../open-for-reading.ts";

/** Files that describe the machine's network. */
interface HostNetwork {
  /** `/etc/resolv.conf` */
  resolvConf: string;
  /** `/proc/net/route`: IPv4 routes, addresses in hexadecimal in the machine's byte order. */
  routes: string;
  /** `/proc/net/ipv6_route` */
  ipv6Routes: string;
}

/** Two networks, `a.b.c.0/24` each, given as `a.b.c`, and what they carry. */
export interface PrivateAddresses {
  /** The network of the namespace that sandboxes are in. */
  inner: string;
  /** The network of the namespace between that one and the machine's. */
  outer: string;
  /** True if the machine has only IPv6 to reach the outside, or its name servers: the networks carry IPv6, too. */
  hasIpv6: boolean;
  /** The name servers of sandboxes. */
  nameServers: readonly string[];
}

/** The first is slirp4netns's default, 10.0.3.0 is next to it, and the others are seldom in use. */
const candidates = ["10.0.2", "10.0.3", "172.29.251", "172.29.252", "192.168.251", "192.168.252"];

/** Returns the machine's `/etc/resolv.conf`; empty if there is none. */
export function readResolvConf(): string {
  return readOptional("/etc/resolv.conf");
}

/** Returns the sandbox's `resolv.conf`: the machine's search domains and options (resolv.conf(5)) with other name servers. */
export function privateResolvConf(machine: string, nameServers: readonly string[]): string {
  const kept = machine.split("\n").filter((line) => /^(search|domain|options)[ \t]/.test(line));
  return [...nameServers.map((address) => `nameserver ${address}`), ...kept, ""].join("\n");
}

export function readHostNetwork(): HostNetwork {
  return {
    resolvConf: readResolvConf(),
    routes: readOptional("/proc/net/route"),
    ipv6Routes: readOptional("/proc/net/ipv6_route"),
  };
}

/** Returns addresses that hide no network that the machine reaches. Throws if no name server would be reachable from them. */
export function findAddresses(machine: HostNetwork): PrivateAddresses {
  const routes = parseRoutes(machine.routes);
  const isFree = (network: string) => !routes.some((route) => !isDefault(route) && overlaps(route, network));
  const free = candidates.filter(isFree);
  const [outer = "10.0.2", inner = "10.0.3"] = free.length < 2 ? candidates : free;
  const hasIpv6Route = hasDefaultRoute(machine.ipv6Routes);
  const ipv6NameServers = onlyIpv6NameServers(machine.resolvConf);
  // slirp4netns(1): the name server is the third address. It forwards to an IPv4 address, even on the machine's loopback.
  if (ipv6NameServers === undefined) {
    return { inner, outer, hasIpv6: hasIpv6Route && !routes.some(isDefault), nameServers: [`${outer}.3`] };
  }
  const reachable = ipv6NameServers.filter((address) => !/^(::1|fe[89ab]\w:.*)$/i.test(address));
  if (hasIpv6Route && reachable.length > 0) return { inner, outer, hasIpv6: true, nameServers: reachable };
  throw new BoughError(
    `a private network reaches no name server of /etc/resolv.conf: ${ipv6NameServers.join(", ")}`,
    { hint: "Name one there that has an IPv4 address." },
  );
}

/** Returns the machine's name servers if there are some, all with IPv6 addresses. */
function onlyIpv6NameServers(resolvConf: string): string[] | undefined {
  const addresses = Array.from(
    resolvConf.matchAll(/^nameserver[ \t]+(\S+)/gm),
    ([, address = ""]) => address,
  );
  return addresses.length > 0 && addresses.every((address) => address.includes(":")) ? addresses : undefined;
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

/** Returns true if a table like `/proc/net/ipv6_route` has a default route. Routes on the loopback interface are for unreachable networks. */
function hasDefaultRoute(ipv6Routes: string): boolean {
  return ipv6Routes.split("\n").some((line) => /^0{32} 00 /.test(line) && !/\slo$/.test(line));
}

/** Returns true if the process's network namespace has a default route and a complete address for IPv6. */
export function isReadyForIpv6(pid: number): boolean {
  const addresses = readOptional(`/proc/${pid}/net/if_inet6`).split("\n");
  // Address, device, length of the prefix, scope (0 is global), flags (0x40: the kernel still checks whether it is unique), device.
  const isComplete = (line: string) => {
    const [, , , scope, flags = ""] = line.split(/\s+/);
    return scope === "00" && (Number.parseInt(flags, 16) & 0x40) === 0;
  };
  return addresses.some(isComplete) && hasDefaultRoute(readOptional(`/proc/${pid}/net/ipv6_route`));
}
