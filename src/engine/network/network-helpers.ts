import { realpathSync } from "node:fs";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { beforeDeadline, endHelper, type Helper, sendLine, startHelper } from "../system/helper.ts";
import { type Environment, findProgram, helperEnvironment } from "../system/programs.ts";
import { leaveDevices } from "./tap-device.ts";

/** A network is there in some 10 milliseconds. */
const maxSeconds = 10;

/** A process of a network: it ends with this one, however that ends, since then its standard input does. */
interface NetworkHelper {
  pid: number;
  /** Resolves when it says that its next part is done. Rejects with its own words where it ends instead, and after a deadline. */
  next(): Promise<void>;
  /** Lets it go on to its command. */
  proceed(): Promise<void>;
}

/** The processes that make up one network: all of them are there, or none. */
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
    const place = { workingDirectory: "/", environment: helperEnvironment(this.#environment) };
    const helper = startHelper(command, place);
    this.#helpers.push(helper);
    helper.exited.then(() => this.#firstEnd.resolve());
    const deadline = { clock: this.#clock, seconds: maxSeconds, failure: "was not ready" };
    const said = helper.stdout[Symbol.asyncIterator]();
    const complaint = new Response(helper.stderr).text();
    return {
      pid: helper.pid,
      async next() {
        const { done } = await beforeDeadline(helper, ["slirp4netns"], said.next(), deadline);
        if (done === true) throw new BoughError(explain(await complaint));
      },
      proceed: () => sendLine(helper),
    };
  }

  /** Resolves when one of them has ended. */
  get firstEnd(): Promise<void> {
    return this.#firstEnd.promise;
  }

  /** Their end is a quick one then; call it where nobody uses the network any more. */
  leaveDevices(): void {
    for (const { pid, exitCode, signalCode } of this.#helpers)
      if (exitCode === null && signalCode === null) leaveDevices(pid);
  }

  async close(): Promise<void> {
    for (const helper of this.#helpers) endHelper(helper);
    await Promise.all(this.#helpers.map(({ exited }) => exited));
  }
}

/** Command line of a process in a network namespace of its own: says so, waits to be told, and becomes `command`. */
export function namespaceHolder(
  environment: Environment,
  command: readonly string[] = [],
  otherNamespaces: readonly string[] = [],
): string[] {
  const shell = [findProgram("sh", environment), "-c", `echo && read -r go && exec "$@"`, "sh"];
  return [findProgram("unshare", environment), ...otherNamespaces, "--net", ...shell, ...command];
}

/**
 * Command line that carries the traffic of the network namespace of process `pid`, and says so once it does. Its sandbox unmounts
 * nearly everything, in a mount namespace of its own whose mounts it leaves shared with the machine's where those are shared, as
 * systemd makes them: it would unmount the machine's. As root it gets a namespace that shares nothing; for others the kernel
 * sees to that (mount_namespaces(7), "Restrictions on mount namespaces").
 */
export function slirp(
  environment: Environment,
  options: { network: string; pid: number; hasNameServer: boolean; isRoot: boolean },
): string[] {
  const { network, pid, hasNameServer, isRoot } = options;
  // Its sandbox has nothing of the file system but /etc and /run, and it reads the name server's address again and again.
  const isSandboxed = !hasNameServer || isBelow(["/etc", "/run"], "/etc/resolv.conf");
  return [
    ...(isRoot ? [findProgram("unshare", environment), "--mount", "--propagation", "private"] : []),
    // It has more to say on its standard output.
    ...[
      findProgram("sh", environment),
      "-c",
      `exec "$@" 3>&1 >/dev/null`,
      "sh",
      findProgram("slirp4netns", environment),
    ],
    ...["--configure", "--mtu=65520", `--cidr=${network}.0/24`, "--disable-host-loopback"],
    ...(hasNameServer ? [] : ["--disable-dns"]),
    ...(isSandboxed ? ["--enable-sandbox"] : []),
    ...["--enable-seccomp", "--ready-fd=3", "--exit-fd=0"],
    ...[String(pid), "tap0"],
  ];
}

/** Links included: WSL's leads to /mnt/wsl. */
function isBelow(directories: readonly string[], path: string): boolean {
  try {
    const real = realpathSync(path);
    return directories.some((directory) => real.startsWith(`${directory}/`));
  } catch {
    // There is none to be read.
    return true;
  }
}

/** Leaves out slirp4netns' warnings about its experimental options: they explain nothing. */
function explain(said: string): string {
  const lines = said.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("WARNING"));
  return lines[0] ?? "slirp4netns ended without a word";
}
