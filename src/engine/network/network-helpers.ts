import { closeSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import {
  beforeDeadline,
  endHelper,
  type Helper,
  isRunning,
  sendLine,
  startHelper,
} from "../../programs/helper.ts";
import { numericCalls } from "../../programs/libc.ts";
import { findWrongProgram } from "../system/program-trials.ts";
import { findProgram, helperEnvironment } from "../system/programs.ts";
import { openForeign } from "./foreign-descriptor.ts";

/** Normally a network is ready in some 10 milliseconds. */
const maxSeconds = 10;

/** A process of a network. It ends with this process in any case, since its standard input is then closed. */
interface NetworkHelper {
  pid: number;
  /** Resolves when the process reports its next part as done. Rejects if it ends instead, and after a deadline. */
  next(): Promise<void>;
  /** Lets the process start its command. */
  proceed(): Promise<void>;
}

/** The processes that make up one network: all of them run, or none. */
export class NetworkHelpers {
  readonly #environment: Environment;
  readonly #clock: Clock;
  readonly #helpers: Helper[] = [];
  readonly #firstEnd = Promise.withResolvers<void>();

  constructor(environment: Environment, clock: Clock) {
    this.#environment = environment;
    this.#clock = clock;
  }

  spawn(command: readonly string[]): NetworkHelper {
    // The process outlives the operation that it was made for, and must not keep a directory in use.
    const [environment, clock] = [this.#environment, this.#clock];
    const place = { workingDirectory: "/", environment: helperEnvironment(environment) };
    const helper = startHelper(command, place);
    this.#helpers.push(helper);
    helper.exited.then(() => this.#firstEnd.resolve());
    const deadline = { clock, seconds: maxSeconds, failure: "was not ready" };
    const reports = helper.stdout[Symbol.asyncIterator]();
    const errorOutput = new Response(helper.stderr).text();
    return {
      pid: helper.pid,
      async next() {
        const { done } = await beforeDeadline(helper, ["slirp4netns"], reports.next(), deadline);
        if (done === true)
          throw (
            (await findWrongProgram(["unshare"], { environment, clock })) ?? firstError(await errorOutput)
          );
      },
      proceed: () => sendLine(helper),
    };
  }

  /** Resolves when any of them has ended. */
  get firstEnd(): Promise<void> {
    return this.#firstEnd.promise;
  }

  /** Lets the processes end quickly. Call it when the network is no longer used. */
  makeDevicesPersistent(): void {
    for (const helper of this.#helpers) if (isRunning(helper)) makeDevicesPersistent(helper.pid);
  }

  async close(): Promise<void> {
    for (const helper of this.#helpers) endHelper(helper);
    await Promise.all(this.#helpers.map(({ exited }) => exited));
  }
}

/** Nothing else is in such a network, so its devices need not wait until their IPv6 addresses are known to be unique. */
const holder = `for setting in accept_dad router_solicitation_delay; do
  echo 0 > /proc/sys/net/ipv6/conf/default/$setting
done 2>/dev/null
echo && read -r go && exec "$@"`;

/** Returns the command line of a process in a new network namespace, which reports that, waits for a line, and then becomes `command`. */
export function namespaceHolder(
  environment: Environment,
  command: readonly string[] = [],
  otherNamespaces: readonly string[] = [],
): string[] {
  const shell = [findProgram("sh", environment), "-c", holder, "sh"];
  return [findProgram("unshare", environment), ...otherNamespaces, "--net", ...shell, ...command];
}

/**
 * Returns the command line of slirp4netns, which carries the traffic of the network namespace of process `pid`, and reports when
 * it does. Its sandbox unmounts nearly everything in its own mount namespace. If the machine's mounts are shared, as systemd
 * makes them, it would unmount the machine's as well. So root gives it a namespace that shares nothing; for others the kernel
 * does (mount_namespaces(7), "Restrictions on mount namespaces").
 */
export function slirp(
  environment: Environment,
  options: { network: string; pid: number; hasNameServer: boolean; hasIpv6: boolean; isRoot: boolean },
): string[] {
  const { network, pid, hasNameServer, hasIpv6, isRoot } = options;
  const isSandboxed = !hasNameServer || isResolvConfInSandbox();
  return [
    ...(isRoot ? [findProgram("unshare", environment), "--mount", "--propagation", "private"] : []),
    // Its readiness goes to descriptor 3, since it prints other lines to its standard output.
    ...[
      findProgram("sh", environment),
      "-c",
      `exec "$@" 3>&1 >/dev/null`,
      "sh",
      findProgram("slirp4netns", environment),
    ],
    ...["--configure", "--mtu=65520", `--cidr=${network}.0/24`, "--disable-host-loopback"],
    ...(hasNameServer ? [] : ["--disable-dns"]),
    ...(hasIpv6 ? ["--enable-ipv6"] : []),
    ...(isSandboxed ? ["--enable-sandbox"] : []),
    ...["--enable-seccomp", "--ready-fd=3", "--exit-fd=0"],
    ...[String(pid), "tap0"],
  ];
}

/**
 * Returns true if slirp4netns, which reads the name server's address repeatedly, can do so in its sandbox, which contains only /etc and
 * /run. On WSL the file is a link to /mnt/wsl.
 */
function isResolvConfInSandbox(): boolean {
  try {
    return /^\/(etc|run)\//.test(realpathSync("/etc/resolv.conf"));
  } catch {
    // There is no file to read.
    return true;
  }
}

/** Lines that slirp4netns prints without an error: warnings about experimental options, and how it passes on the device. */
const harmlessLine = /^(WARNING|sent tapfd|received tapfd)/;

/** Returns an error with the first error message of slirp4netns. */
function firstError(output: string): BoughError {
  const lines = output.split("\n").filter((line) => line.trim() !== "" && !harmlessLine.test(line));
  return new BoughError(lines[0] ?? "slirp4netns exited without an error message");
}

/** `TUNSETPERSIST` of linux/if_tun.h. */
const setPersistent = 0x400454cb;

/**
 * Makes a process's network devices persistent, so that they end with its network namespace instead of the process. A device that
 * ends with its process delays the process's end by some 15 ms, in which the kernel makes sure that the device is unused. If the
 * kernel does not allow the change, the delay remains.
 */
function makeDevicesPersistent(pid: number): void {
  try {
    for (const descriptor of tunDescriptors(pid)) makePersistent(pid, descriptor);
  } catch {
    // The process has ended, or the call is missing: Linux before 5.6.
  }
}

/** Returns the descriptors of `/dev/net/tun`. slirp4netns's sandbox shows it by another path, in a file system that is not mounted. */
function tunDescriptors(pid: number): number[] {
  const directory = `/proc/${pid}/fd`;
  return readdirSync(directory)
    .filter((name) => readlinkSync(join(directory, name)).endsWith("/net/tun"))
    .map(Number);
}

function makePersistent(pid: number, descriptor: number): void {
  const own = openForeign(pid, descriptor);
  if (own === undefined) return;
  numericCalls().ioctl(own, setPersistent, 1);
  closeSync(own);
}
