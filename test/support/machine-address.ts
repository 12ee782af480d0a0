import { networkInterfaces } from "node:os";

/** An address of TEST-NET-2 (RFC 5737). */
const made = "198.51.100.8";

/** Finds an address of this machine that a RUN can reach (unlike loopback). Without a network it adds one for the test. */
export function findMachineAddress(): { address: string; release(): void } {
  const known = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === "IPv4" && !one.internal);
  if (known !== undefined) return { address: known.address, release() {} };
  const change = (verb: string) => Bun.spawnSync(["busybox", "ip", "addr", verb, `${made}/32`, "dev", "lo"]);
  change("add");
  return { address: made, release: () => void change("del") };
}
