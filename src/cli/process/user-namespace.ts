import { readFileSync } from "node:fs";
import { runHelper } from "../../engine/system/helper.ts";
import { BoughError, messageOf } from "../../errors.ts";
import type { Runtime } from "./runtime.ts";

/** Set for the second run, so that a namespace that gives no root is an error and not an endless row of them. */
const marker = "BOUGH_USER_NAMESPACE";

/** What a program runs behind, to be root in a user namespace with file systems of its own. */
export const userNamespaceEntry = ["unshare", "--user", "--map-root-user", "--map-auto", "--mount", "--"];

/**
 * The engine mounts file systems and changes owners: only root can, or the root of a user namespace. For an ordinary
 * user the whole command line is run again as the latter, with the user's sub-id ranges, so that `chown`, `su` and
 * package managers work in a RUN: this does not return then. Rejects with what is missing for it.
 */
export async function enterUserNamespace(runtime: Runtime): Promise<void> {
  if (!needsUserNamespace(runtime)) return;
  const problem = await findUserNamespaceProblem(runtime);
  if (problem !== undefined) throw problem;
  runtime.replaceProcess([...leavingProcesses(), ...userNamespaceEntry], { [marker]: "1" });
}

/**
 * The kernel counts all processes of a user namespace for the user who made it, whatever users it has inside, and lets it
 * start no more than the limit that held when it was made (user_namespaces(7); RLIMIT_NPROC, since Linux 5.14).
 */
function leavingProcesses(): string[] {
  const [, own] = /^Max processes\s+(\d+)/m.exec(readSetting("/proc/self/limits") ?? "") ?? [];
  const maxPid = Number(readSetting("/proc/sys/kernel/pid_max") ?? 32_768);
  return ["prlimit", `--nproc=${processesWithin(own === undefined ? maxPid : Number(own), maxPid)}:`];
}

/** How many processes stay out of the namespace's reach, so that a fork bomb in there leaves the login as it was. */
const processesLeft = 1024;

/** `own`: how many the user may have; `maxPid`: how many the machine can have. */
export function processesWithin(own: number, maxPid: number): number {
  return Math.ceil(Math.min(own - Math.min(own / 4, processesLeft), maxPid / 2));
}

export function needsUserNamespace({ userId }: Runtime): boolean {
  return userId !== 0 && userId !== undefined;
}

/** The trial takes some milliseconds. */
const maxTrialSeconds = 10;

/** Why an ordinary user can't have a user namespace in which the engine works, if so. */
export async function findUserNamespaceProblem(runtime: Runtime): Promise<BoughError | undefined> {
  const { environment } = runtime;
  const path = environment.PATH ?? "";
  const missing = ["unshare", "prlimit", "newuidmap"].filter(
    (program) => Bun.which(program, { PATH: path }) === null,
  );
  if (missing.length > 0) {
    return unusable(
      `the program ${missing.join(" and ")} is missing`,
      "Install it (Debian packages: util-linux, uidmap).",
    );
  }
  if (environment[marker] !== undefined) return unusable("the namespace gives no root");
  // Tried on a program that does nothing: once this process is replaced, it can't explain anything any more.
  try {
    const { status, stderr } = await runHelper([...userNamespaceEntry, "true"], {
      environment: { PATH: path },
      clock: runtime.clock,
      seconds: maxTrialSeconds,
      signal: runtime.signal,
    });
    return status === 0 ? undefined : explain(stderr.trim() || `unshare exited with ${status}`, runtime);
  } catch (error) {
    runtime.signal.throwIfAborted();
    return unusable(messageOf(error), error instanceof BoughError ? error.hint : undefined);
  }
}

/** The switches by which kernels and distributions forbid user namespaces, and how each is turned. */
const switches: readonly { file: string; forbids: string; hint: string }[] = [
  {
    file: "/proc/sys/user/max_user_namespaces",
    forbids: "0",
    hint: "As root: sysctl user.max_user_namespaces=10000",
  },
  {
    file: "/proc/sys/kernel/unprivileged_userns_clone",
    forbids: "0",
    hint: "As root: sysctl kernel.unprivileged_userns_clone=1",
  },
  {
    file: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    forbids: "1",
    hint: "As root: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or give bough an AppArmor profile with `userns,`",
  },
];

function explain(said: string, runtime: Runtime): BoughError {
  if (/subuid|subgid|newuidmap|newgidmap|map-auto/.test(said)) {
    const range = freeSubIds(["/etc/subuid", "/etc/subgid"].map((file) => readSetting(file) ?? ""));
    return unusable(
      `the user has no range of sub-ids (${said})`,
      `As root: usermod --add-subuids ${range} --add-subgids ${range} ${userName(runtime)}`,
    );
  }
  const closed = switches.find(({ file, forbids }) => readSetting(file) === forbids);
  if (closed !== undefined) return unusable(`${closed.file} is ${closed.forbids}`, closed.hint);
  return /not permitted/.test(said) ? unusable(said, confined) : unusable(said);
}

/** clone(2): EPERM is for who is in a chroot; containers and sandboxes answer the same by a filter of system calls. */
const confined =
  "A chroot, a container or a sandbox forbids them here. Use a remote service (--url), or run bough as root or outside of it.";

/** `100000-165535`, or the same beyond all that somebody has: who shares ids with another can change that one's files. */
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

function unusable(reason: string, hint = "Use a remote service (--url), or run bough as root."): BoughError {
  return new BoughError(
    `the embedded engine needs root, or a user namespace, which can't be had: ${reason}`,
    { hint },
  );
}

/** Returns the name that the machine's own table has, else the login's. Bun's os.userInfo() knows the latter only. */
function userName({ environment, userId }: Runtime): string {
  const table = readSetting("/etc/passwd") ?? "";
  const [, name] = new RegExp(`^([^:\\n]+):[^:\\n]*:${userId}:`, "m").exec(table) ?? [];
  return name ?? (environment.USER || "USER");
}

function readSetting(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
