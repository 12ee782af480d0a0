/** Errors for containers in which an ordinary user can't make a user namespace, with the settings that allow it. */
import { hasCapability } from "../../engine/system/user-namespace.ts";
import { type BoughError, usageError } from "../../errors.ts";
import { isInUserNamespace } from "../../own-path.ts";
import { findContainer, settingsFor } from "./container.ts";
import { accountName, findClosedSwitch, hasSubIds, readSetting } from "./namespace-settings.ts";
import type { Runtime } from "./runtime.ts";

/**
 * Returns an error with the settings that this container must be started with. `undefined` outside of containers, and for problems
 * that can be fixed inside.
 *
 * @param said what the program that makes the namespace has printed
 * @param canMakeNamespace tells whether a namespace without further users can be made
 */
export async function explainContainer(
  said: string,
  { environment, userId }: Pick<Runtime, "environment" | "userId">,
  canMakeNamespace: () => Promise<boolean>,
): Promise<BoughError | undefined> {
  const kind = findContainer(environment);
  if (kind === undefined) return undefined;
  const isPod = kind === "Kubernetes";
  const lacks = (reason: string, setting: string) =>
    usageError(
      `bough can't build in this container (${kind}), as ${reason}: ${setting}`,
      "`bough help ci` lists how to start it, and what a RUN is confined by. Or use a service (--url).",
    );
  const missing = missingCapabilities(userId);
  const explainRefusal = () => {
    const closed = isFiltered() ? undefined : findClosedSwitch();
    if (closed !== undefined)
      return lacks(
        `${closed.file} of its host is ${closed.forbids}`,
        `as root of the host: ${closed.setting}; or give the container all rights (--privileged)`,
      );
    const reason = `it may not make user namespaces (${said.replace(/^unshare: /, "")})`;
    if (isFiltered())
      return lacks(
        reason,
        `${settingsFor(kind)}${missing.length === 0 ? "" : `, and ${capabilitySettings(missing, isPod)}`}`,
      );
    const without = isPod
      ? "privileged: true with runAsUser: 0 needs none"
      : "--user 0 --privileged needs none";
    return lacks(
      `${reason}, though no filter of system calls forbids it`,
      `its host forbids them to all, as in a chroot; ${without}`,
    );
  };
  if (!(await canMakeNamespace())) return explainRefusal();
  if (accountName(userId) === undefined)
    return lacks(
      `the user ${userId} has no name in /etc/passwd, and so no range of sub-ids`,
      isPod
        ? "set runAsUser to 65532, or to 0 with hostUsers: false"
        : "start it with --user 65532, or with --user 0",
    );
  if (missing.length > 0)
    return lacks(
      `newuidmap and newgidmap may not map users in it, without the capabilities ${missing.join(", ")}`,
      `${isPod ? "" : "start it with "}${capabilitySettings(missing, isPod)}`,
    );
  const canMap = hasCapability("setuid", "effective") && hasCapability("setgid", "effective");
  if (!canMap && /^NoNewPrivs:\s+1/m.test(readSetting("/proc/self/status") ?? ""))
    return lacks(
      "no program may gain privileges in it, and newuidmap has to map users",
      isPod ? "leave out allowPrivilegeEscalation: false" : "leave out --security-opt no-new-privileges",
    );
  if (hasSubIds(userId) && isInUserNamespace())
    return lacks(
      "its own user namespace lacks the user's sub-ids",
      isPod ? "set runAsUser to 0" : "start it with --user 0",
    );
  return undefined;
}

/** True if a filter of system calls, or AppArmor, confines this process. */
function isFiltered(): boolean {
  const label = readSetting("/proc/self/attr/current") ?? "";
  const isConfined = label !== "" && !label.startsWith("unconfined");
  return isConfined || !/^Seccomp:\s+0/m.test(readSetting("/proc/self/status") ?? "");
}

/** Returns the capabilities that newuidmap and newgidmap need, and that the container's bounding set lacks, whatever their files have. */
function missingCapabilities(userId: number | undefined): string[] {
  // Since Linux 5.12, mapping root needs CAP_SETFCAP.
  const needed = ["setuid", "setgid", ...(userId === 0 ? (["setfcap"] as const) : [])] as const;
  return needed.filter((name) => !hasCapability(name, "bounding")).map((name) => name.toUpperCase());
}

function capabilitySettings(capabilities: readonly string[], isPod: boolean): string {
  return isPod
    ? `add ${capabilities.join(", ")} to the capabilities of its securityContext`
    : capabilities.map((name) => `--cap-add ${name}`).join(" ");
}
