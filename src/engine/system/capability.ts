import { readFileSync } from "node:fs";

/** Bits in a set of capabilities, from linux/capability.h. */
const bits = { sysAdmin: 1n << 21n, sysResource: 1n << 24n };

/** Returns whether this process has a capability in its user namespace. */
export function hasCapability(name: keyof typeof bits): boolean {
  const [, effective = "0"] = /^CapEff:\s+(\w+)/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return (BigInt(`0x${effective}`) & bits[name]) !== 0n;
}
