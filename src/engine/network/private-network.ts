import { closeSync, openSync } from "node:fs";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { findProgram } from "../system/programs.ts";
import { findAddresses, isReadyForIpv6, type PrivateAddresses, readHostNetwork } from "./host-network.ts";
import { NetworkHelpers, namespaceHolder, slirp } from "./network-helpers.ts";

/** A network namespace that can't reach this machine's loopback. */
export interface PrivateNetwork {
  /** An open directory in which `net` is the namespace, to be joined once it is ready; closed when the network ends. */
  namespaces: number;
  /** The name servers of sandboxes in it; see `PrivateAddresses`. */
  nameServers: readonly string[];
  /** Rejects with slirp4netns' error message, or if it takes too long. */
  ready: Promise<void>;
  /** Resolves when the network no longer works. Its processes are then ended. */
  broken: Promise<unknown>;
  close(): Promise<void>;
}

/**
 * Makes a network namespace whose traffic slirp4netns carries. `--disable-host-loopback` only blocks slirp4netns' alias of the
 * machine's loopback. A packet to 127.0.0.1 that leaves a sandbox through its interface (SO_BINDTODEVICE needs no privilege) is
 * connected to 127.0.0.1 where slirp4netns runs. So there are two in a row: the inner one runs in a namespace of its own, where
 * nothing listens on the loopback.
 */
export function startPrivateNetwork(
  addresses: PrivateAddresses,
  environment: Environment,
  clock: Clock,
): PrivateNetwork {
  findProgram("slirp4netns", environment);
  const helpers = new NetworkHelpers(environment, clock);
  try {
    return startOn(helpers, addresses, environment, clock);
  } catch (error) {
    helpers.close().catch(() => undefined);
    throw error;
  }
}

function startOn(
  helpers: NetworkHelpers,
  addresses: PrivateAddresses,
  environment: Environment,
  clock: Clock,
): PrivateNetwork {
  const sandboxes = helpers.spawn(namespaceHolder(environment));
  const inner = slirp(environment, {
    network: addresses.inner,
    pid: sandboxes.pid,
    hasNameServer: false,
    hasIpv6: addresses.hasIpv6,
    isRoot: true,
  });
  const between = helpers.spawn(namespaceHolder(environment, inner));
  const namespaces = openSync(`/proc/${sandboxes.pid}/ns`, "r");
  const ended = helpers.firstEnd.then(async () => {
    await helpers.close();
    closeSync(namespaces);
  });
  const connect = async () => {
    await Promise.all([sandboxes.next(), between.next()]);
    const outer = slirp(environment, {
      network: addresses.outer,
      pid: between.pid,
      hasNameServer: true,
      hasIpv6: addresses.hasIpv6,
      isRoot: true,
    });
    const machine = helpers.spawn(outer);
    await between.proceed();
    await Promise.all([machine.next(), between.next()]);
    if (addresses.hasIpv6) await untilIpv6(clock, [sandboxes.pid, between.pid]);
  };
  const close = async () => {
    helpers.makeDevicesPersistent();
    await helpers.close();
    await ended;
  };
  const ready = connect().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  const { nameServers } = addresses;
  return { namespaces, nameServers, ready, broken: helpers.firstEnd, close };
}

/** Milliseconds. The kernel gives a device its IPv6 address and route some time after slirp4netns is ready. */
const [maxIpv6Wait, ipv6Interval] = [10_000, 10];

async function untilIpv6(clock: Clock, processes: readonly number[]): Promise<void> {
  for (let waited = 0; !processes.every(isReadyForIpv6); waited += ipv6Interval) {
    if (waited >= maxIpv6Wait) throw new BoughError("slirp4netns gave the network no IPv6 address");
    await clock.sleep(ipv6Interval);
  }
}

/** Tries whether slirp4netns works for this process's user and network. Rejects with the reason if it doesn't. */
export async function tryPrivateNetwork(
  environment: Environment,
  clock: Clock,
  isRoot: boolean,
): Promise<void> {
  const { outer, hasIpv6 } = findAddresses(readHostNetwork());
  const helpers = new NetworkHelpers(environment, clock);
  try {
    const userNamespace = isRoot ? [] : ["--user", "--map-root-user"];
    const sandboxes = helpers.spawn(namespaceHolder(environment, [], userNamespace));
    await sandboxes.next();
    const command = slirp(environment, {
      network: outer,
      pid: sandboxes.pid,
      hasNameServer: true,
      hasIpv6,
      isRoot,
    });
    await helpers.spawn(command).next();
    if (hasIpv6) await untilIpv6(clock, [sandboxes.pid]);
  } finally {
    await helpers.close();
  }
}
