import { networkInterfaces } from "node:os";

/** From TEST-NET-2 (RFC 5737). */
const made = "198.51.100.8";

/** An address of this machine that a RUN reaches, which its loopback's are not: on one without a network, made for the test. */
export function findMachineAddress(): { address: string; release(): void } {
  const known = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === "IPv4" && !one.internal);
  if (known !== undefined) return { address: known.address, release() {} };
  const change = (verb: string) => Bun.spawnSync(["busybox", "ip", "addr", verb, `${made}/32`, "dev", "lo"]);
  change("add");
  return { address: made, release: () => void change("del") };
}
