/** Addresses that a client of a server must not make it connect to. */
import { lookup } from "node:dns/promises";
import { BlockList } from "node:net";
import { BoughError } from "../../errors.ts";

/** Loopback, link-local (where clouds have their metadata), and "this host", which connects to loopback. */
const local = new BlockList();
for (const [network, bits, kind] of [
  ["127.0.0.0", 8, "ipv4"],
  ["0.0.0.0", 8, "ipv4"],
  ["169.254.0.0", 16, "ipv4"],
  ["::", 127, "ipv6"],
  ["fe80::", 10, "ipv6"],
  ["::ffff:127.0.0.0", 104, "ipv6"],
  ["::ffff:0.0.0.0", 104, "ipv6"],
  ["::ffff:169.254.0.0", 112, "ipv6"],
] as const)
  local.addSubnet(network, bits, kind);

/**
 * Returns an address of a host, to connect to exactly what was checked.
 *
 * @throws BoughError if one of its addresses is local
 */
export async function resolveRemote(host: string): Promise<string> {
  const addresses = await lookup(host.replace(/^\[(.*)\]$/, "$1"), { all: true });
  const found = addresses.find(({ address, family }) => local.check(address, family === 6 ? "ipv6" : "ipv4"));
  if (found !== undefined) throw new LocalAddressError(host, found.address);
  const [first] = addresses;
  if (first === undefined) throw new Error(`${host} has no address`);
  return first.address;
}

export class LocalAddressError extends BoughError {
  override readonly name = "LocalAddressError";

  constructor(host: string, address: string) {
    const which = host === address || host === `[${address}]` ? host : `${host} (${address})`;
    super(
      `a client of this server cannot make it connect to ${which}: it is an address of the server itself or of its link; \`bough serve --allow-local-fetch\` allows it`,
    );
  }
}
