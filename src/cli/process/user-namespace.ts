import { findWrongProgram } from "../../engine/system/program-trials.ts";
import { hasCapability } from "../../engine/system/user-namespace.ts";
import { BoughError, messageOf } from "../../errors.ts";
import { homeDirectory } from "../../home-directory.ts";
import type { Message } from "../../messages/wording.ts";
import { isInUserNamespace } from "../../own-path.ts";
import { runHelper } from "../../programs/helper.ts";
import { findContainer } from "./container.ts";
import { explainContainer } from "./container-problem.ts";
import { accountName, findClosedSwitch, hasSubIds, readSetting, subIdTables } from "./namespace-settings.ts";
import type { Runtime } from "./runtime.ts";

/** The variable that is set for the second run, so that a namespace without root is an error, not an endless recursion. */
const namespaceVariable = "BOUGH_USER_NAMESPACE";

/** A command prefix that runs a program as root of a user namespace with its own mounts. */
export const userNamespaceEntry = ["unshare", "--user", "--map-root-user", "--map-auto", "--mount", "--"];

/**
 * Runs the command line of an ordinary user again as root of a user namespace: the engine mounts file systems and changes owners,
 * which needs root. The namespace has the user's ranges of sub-ids, so that `chown`, `su` and package managers work in a RUN. Does
 * not return in that case. Returns an error if the namespace can't be made, and `undefined` if none is needed.
 *
 * To be called before anything is read: the second run inherits the descriptors, but not what was read from a pipe.
 */
export async function enterUserNamespace(runtime: Runtime): Promise<BoughError | undefined> {
  if (!(await needsUserNamespace(runtime))) return undefined;
  const replaceProcess = await runtime.prepareReplacement();
  const problem = await findUserNamespaceProblem(runtime);
  if (problem !== undefined) return problem;
  // Without HOME, root of the namespace would get the home of the machine's root.
  const HOME = homeDirectory(runtime.environment);
  return replaceProcess([...processLimitPrefix(), ...userNamespaceEntry], { [namespaceVariable]: "1", HOME });
}

/**
 * Returns a command prefix that limits the number of processes. The kernel counts all processes in a user namespace as processes of
 * the user who made it, whatever users they have inside, and applies the limit at the time when the namespace was made
 * (user_namespaces(7); RLIMIT_NPROC, since Linux 5.14).
 */
function processLimitPrefix(): string[] {
  const [, own] = /^Max processes\s+(\d+)/m.exec(readSetting("/proc/self/limits") ?? "") ?? [];
  const maxPid = Number(readSetting("/proc/sys/kernel/pid_max") ?? 32_768);
  return ["prlimit", `--nproc=${maxProcesses(own === undefined ? maxPid : Number(own), maxPid)}:`];
}

/** The number of processes reserved for the user outside of the namespace, so that a fork bomb in it does not block the login. */
const reservedProcesses = 1024;

/** Returns the maximum number of processes in the namespace. `own`: the user's limit. */
export function maxProcesses(own: number, maxPid: number): number {
  return Math.ceil(Math.min(own - Math.min(own / 4, reservedProcesses), maxPid / 2));
}

export async function needsUserNamespace({ userId, environment, platform }: Runtime): Promise<boolean> {
  if (userId === undefined || platform !== "linux") return false;
  // A container's root usually lacks the capability to mount, or control groups, which are needed to deny devices to a RUN.
  if (userId !== 0 || !hasCapability("sysAdmin")) return true;
  if (isInUserNamespace() || findContainer(environment) === undefined) return false;
  const { canRestrictDevices } = await import("../../engine/sandbox/runtime/choice.ts");
  return !canRestrictDevices();
}

/** The trial usually takes a few milliseconds. */
const maxTrialSeconds = 10;

/** Returns an error if an ordinary user can't make the user namespace that the engine needs; `undefined` if it can be made. */
export async function findUserNamespaceProblem(runtime: Runtime): Promise<BoughError | undefined> {
  const { environment } = runtime;
  const path = environment.PATH ?? "";
  const missing = ["unshare", "prlimit", "newuidmap"].filter(
    (program) => Bun.which(program, { PATH: path }) === null,
  );
  if (missing.length > 0) {
    return unusable(
      `missing programs: ${missing.join(", ")}`,
      "Install them (Debian packages: util-linux, uidmap).",
    );
  }
  if (environment[namespaceVariable] !== undefined) return unusable("bough is not root in the namespace");
  // Makes a namespace for a program that does nothing, since this process can't report an error after it is replaced.
  const { clock, signal } = runtime;
  const options = { environment: { PATH: path }, clock, seconds: maxTrialSeconds, signal };
  try {
    const { status, stderr } = await runHelper([...userNamespaceEntry, "true"], options);
    if (status === 0) return undefined;
    const said = stderr.trim() || `unshare exited with ${status}`;
    return (
      (await findWrongProgram(["userMapping"], runtime)) ??
      (await explainContainer(said, runtime, canMakeNamespace)) ??
      ((await canMakeNamespace()) ? explainMapping(said, runtime) : explainRefusal(said))
    );
  } catch (error) {
    runtime.signal.throwIfAborted();
    return unusable(messageOf(error), error instanceof BoughError ? error.hint : undefined);
  }

  /** True if a namespace can be made without mapping any users. */
  async function canMakeNamespace(): Promise<boolean> {
    return (await runHelper(["unshare", "--user", "true"], options)).status === 0;
  }
}

/** Returns the error for newuidmap and newgidmap, which could not map the users of a namespace. */
function explainMapping(said: string, runtime: Runtime): BoughError {
  if (hasSubIds(runtime.userId)) {
    const programs = ["newuidmap", "newgidmap"].map(
      (name) => Bun.which(name, { PATH: runtime.environment.PATH ?? "" }) ?? name,
    );
    const [users, groups] = programs;
    return unusable(
      `newuidmap and newgidmap may not map sub-ids (${said})`,
      findContainer(runtime.environment) === undefined
        ? `They need the setuid bit, and a file system without nosuid. As root: chmod u+s ${programs.join(" ")}`
        : // In a container, root lacks the capabilities that the setuid bit would have to give them.
          `In a container they need file capabilities. In its image: setcap cap_setuid=ep ${users} && setcap cap_setgid=ep ${groups}`,
    );
  }
  const range = freeSubIds(subIdTables.map((file) => readSetting(file) ?? ""));
  return unusable(
    `the user has no range of sub-ids (${said})`,
    `As root: usermod --add-subuids ${range} --add-subgids ${range} ${userName(runtime)}`,
  );
}

/** Returns the error for a kernel that refuses to make a user namespace. */
function explainRefusal(said: string): BoughError {
  const closed = findClosedSwitch();
  if (closed === undefined) return unusable(said, confinedHint);
  const { file, forbids, setting, instead } = closed;
  const hint = instead === undefined ? setting : `${instead}. Or, for all programs: ${setting}`;
  return unusable(`${file} is ${forbids}`, `As root: ${hint}`);
}

/** The hint for EPERM, which clone(2) returns in a chroot, and under the system call filters of containers and sandboxes. */
const confinedHint =
  "A chroot, a container or a sandbox forbids them here. Use a remote service (--url), or run bough as root or outside of it.";

/** Returns `100000-165535`, or a range after all assigned ones: users with the same sub-ids could change each other's files. */
export function freeSubIds(tables: readonly string[]): string {
  const ends = tables.flatMap((table) =>
    Array.from(
      table.matchAll(/^[^:\n]+:(\d+):(\d+)$/gm),
      ([, start, count]) => Number(start) + Number(count),
    ),
  );
  const first = Math.max(100_000, ...ends);
  return `${first}-${first + 65_535}`;
}

function unusable(
  reason: string,
  hint: Message = "Use a remote service (--url), or run bough as root.",
): BoughError {
  return new BoughError(
    `the embedded engine needs root, or a user namespace, which can't be created: ${reason}`,
    { hint },
  );
}

/** Returns the user's name from `/etc/passwd`, else from the environment. Bun's os.userInfo() uses only the latter. */
function userName({ environment, userId }: Runtime): string {
  return accountName(userId) ?? (environment.USER || "USER");
}
