import { closeSync, openSync } from "node:fs";
import type { Clock } from "../../clock.ts";
import type { Environment } from "../system/programs.ts";
import type { PrivateAddresses } from "./machine-network.ts";
import { NetworkHelpers, namespaceHolder, slirp } from "./network-helpers.ts";

/** A network namespace without a way to this machine's loopback. */
export interface PrivateNetwork {
  /** An open file of the namespace, for those who join it. */
  namespace: number;
  /** Passes questions on to the machine's own name server, one on the machine's loopback included. */
  nameServer: string;
  /** Resolves when it no longer works. */
  ended: Promise<void>;
  close(): Promise<void>;
}

/**
 * Makes a network namespace whose traffic slirp4netns carries. `--disable-host-loopback` refuses its alias of the machine's
 * loopback only: a packet to 127.0.0.1 that leaves a sandbox through its interface (SO_BINDTODEVICE asks for no privilege) is
 * connected to 127.0.0.1 where slirp4netns runs. So there are two, one behind the other: the first runs in a namespace of
 * its own, on whose loopback nobody listens. Rejects with what slirp4netns said, or where it takes too long.
 */
export async function startPrivateNetwork(
  addresses: PrivateAddresses,
  environment: Environment,
  clock: Clock,
): Promise<PrivateNetwork> {
  const helpers = new NetworkHelpers(environment, clock);
  try {
    const sandboxes = helpers.spawn(namespaceHolder(environment));
    const inner = slirp(environment, { network: addresses.inner, pid: sandboxes.pid, hasNameServer: false });
    const between = helpers.spawn(namespaceHolder(environment, inner));
    await Promise.all([sandboxes.next(), between.next()]);
    const outer = helpers.spawn(
      slirp(environment, { network: addresses.outer, pid: between.pid, hasNameServer: true }),
    );
    between.proceed();
    await Promise.all([outer.next(), between.next()]);
    const namespace = openSync(`/proc/${sandboxes.pid}/ns/net`, "r");
    const ended = helpers.firstEnd().then(async () => {
      await helpers.close();
      closeSync(namespace);
    });
    return {
      namespace,
      // slirp4netns(1): the third address.
      nameServer: `${addresses.outer}.3`,
      ended,
      async close() {
        await helpers.close();
        await ended;
      },
    };
  } catch (error) {
    await helpers.close();
    throw error;
  }
}

/** Tries whether slirp4netns works for this process's user. Rejects with the reason why not. */
export async function tryPrivateNetwork(
  environment: Environment,
  clock: Clock,
  isRoot: boolean,
): Promise<void> {
  const helpers = new NetworkHelpers(environment, clock);
  try {
    const userNamespace = isRoot ? [] : ["--user", "--map-root-user"];
    const sandboxes = helpers.spawn(namespaceHolder(environment, [], userNamespace));
    await sandboxes.next();
    const command = slirp(environment, { network: "10.0.2", pid: sandboxes.pid, hasNameServer: true });
    await helpers.spawn(command).next();
  } finally {
    await helpers.close();
  }
}
