import { isIPv4, isIPv6 } from "node:net";
import { ArgumentError } from "../evaluate/eval-context.ts";
import { type HclValue, stringList, stringValue } from "../values/value.ts";
import { define, defineVariadic, type FunctionTable, integerIn, number, text, textIn } from "./define.ts";

export const networkFunctions: FunctionTable = {
  cidrhost: define([text("prefix"), number("hostnum")], (given) => {
    const network = parseNetwork(given);
    const host = BigInt(integerIn(given, 1));
    const count = 1n << BigInt(network.bits - network.length);
    // A negative number counts from the end.
    const offset = host < 0n ? count + host : host;
    if (offset < 0n || offset >= count)
      throw new ArgumentError(1, `a prefix of ${network.length} has no host ${host}`);
    return stringValue(addressText(network.address | offset, network.bits));
  }),
  cidrnetmask: define([text("prefix")], (given) => {
    const { bits, length } = parseNetwork(given);
    return stringValue(addressText(maskOf(bits, length), bits));
  }),
  cidrsubnet: define([text("prefix"), number("newbits"), number("netnum")], (given) => {
    const network = parseNetwork(given);
    const [added, index] = [integerIn(given, 1), integerIn(given, 2)];
    const length = network.length + added;
    if (added > 32) throw new ArgumentError(1, "a prefix can be extended by at most 32 bits");
    if (added < 0 || length > network.bits)
      throw new ArgumentError(1, `a prefix of ${network.length} can't be extended by ${added} bits`);
    if (index < 0 || index >= 2 ** added)
      throw new ArgumentError(2, `${added} more bits have no subnet ${index}`);
    const address = network.address | (BigInt(index) << BigInt(network.bits - length));
    return stringValue(networkText({ ...network, address, length }));
  }),
  cidrsubnets: defineVariadic([text("prefix")], number("newbits"), subnets),
};

interface Network {
  address: bigint;
  /** 32 or 128. */
  bits: number;
  /** The number of bits of the prefix. */
  length: number;
}

function subnets(given: readonly HclValue[]): HclValue {
  const network = parseNetwork(given);
  const end = network.address + (1n << BigInt(network.bits - network.length));
  let next = network.address;
  const made = given.slice(1).map((_, index) => {
    const added = integerIn(given, index + 1);
    if (added < 1 || added > 32) throw new ArgumentError(index + 1, "a prefix is extended by 1 to 32 bits");
    const length = network.length + added;
    if (length > network.bits)
      throw new ArgumentError(index + 1, `an address has ${network.bits} bits, not ${length}`);
    const size = 1n << BigInt(network.bits - length);
    const address = ((next + size - 1n) / size) * size;
    next = address + size;
    if (next > end)
      throw new ArgumentError(
        index + 1,
        `there is no room left for a subnet with a prefix of ${length} bits`,
      );
    return networkText({ ...network, address, length });
  });
  return stringList(made);
}

function parseNetwork(given: readonly HclValue[]): Network {
  const written = textIn(given[0]);
  const [, host = "", prefix = ""] = /^([^/%]*)\/(0|[1-9]\d{0,2})$/.exec(written) ?? [];
  const bits = isIPv4(host) ? 32 : isIPv6(host) ? 128 : 0;
  const length = Number(prefix);
  if (bits === 0 || length > bits)
    throw new ArgumentError(0, `${JSON.stringify(written)} is not a network`, "As in 10.0.0.0/8");
  return { address: parseAddress(host) & maskOf(bits, length), bits, length };
}

function maskOf(bits: number, length: number): bigint {
  return ((1n << BigInt(length)) - 1n) << BigInt(bits - length);
}

function parseAddress(written: string): bigint {
  const number = (parts: readonly number[], size: bigint) =>
    parts.reduce((sum, part) => (sum << size) | BigInt(part), 0n);
  if (isIPv4(written)) return number(written.split(".").map(Number), 8n);
  // The last 32 bits may be written as an IPv4 address.
  const [, start = written, ipv4] = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(written) ?? [];
  const last = ipv4 === undefined ? [] : ipv4.split(".").map(Number);
  const tail =
    last.length === 4 ? [((last[0] ?? 0) << 8) | (last[1] ?? 0), ((last[2] ?? 0) << 8) | (last[3] ?? 0)] : [];
  const words = (side: string) =>
    side
      .split(":")
      .filter((word) => word !== "")
      .map((word) => Number.parseInt(word, 16));
  const [left = "", right] = start.split("::");
  const [before, after] = [words(left), [...words(right ?? ""), ...tail]];
  return number(
    [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after],
    16n,
  );
}

function networkText({ address, bits, length }: Network): string {
  return `${addressText(address, bits)}/${length}`;
}

function addressText(address: bigint, bits: number): string {
  const size = bits === 32 ? 8 : 16;
  const parts = Array.from({ length: bits / size }, (_, index) =>
    Number((address >> BigInt(bits - size * (index + 1))) & ((1n << BigInt(size)) - 1n)),
  );
  if (bits === 32) return parts.join(".");
  if (address >> 32n === 0xffffn) return addressText(address & 0xffffffffn, 32);
  return shortened(parts.map((part) => part.toString(16)));
}

/** Replaces the longest row of zeros, at least two of them, by `::`. */
function shortened(words: readonly string[]): string {
  let best = { start: 0, length: 1 };
  for (let start = 0; start < words.length; start++) {
    let length = 0;
    while (words[start + length] === "0") length += 1;
    if (length > best.length) best = { start, length };
  }
  if (best.length < 2) return words.join(":");
  return `${words.slice(0, best.start).join(":")}::${words.slice(best.start + best.length).join(":")}`;
}
