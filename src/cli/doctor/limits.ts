/** Checks for the control groups that enforce the limits of a RUN on the embedded engine. */
import {
  type Controllers,
  canMakeGroup,
  containerParent,
  controllerNames,
  isCrowded,
  ownHierarchies,
  usableControllers,
} from "../../engine/sandbox/limits/controllers.ts";
import { makeRoomBelow } from "../../engine/sandbox/limits/room-below.ts";
import type { CheckResult } from "./check-result.ts";

export interface LimitFacts {
  controllers: Controllers;
  isRoot: boolean;
  /** True if the controllers that set limits are in control groups of version 2. */
  hasVersionTwo: boolean;
  /** The group of version 2 in which groups can be made, but not limited, since it has processes, as in a container. */
  crowdedGroup?: string | undefined;
}

const nouns = { memory: "memory", pids: "processes", cpu: "processors" } as const;

/**
 * Reports missing control groups. For an ordinary user, bough itself watches what a command uses. For root, no RUN starts without
 * control groups, since one keeps devices from it: its status is `unmet`.
 */
export function diagnoseLimits(facts: LimitFacts, unmet: "failed" | "warning"): CheckResult {
  const check = "engine's limits";
  const missing = controllerNames.filter((name) => facts.controllers[name] === undefined);
  if (facts.isRoot && missing.length === controllerNames.length && facts.crowdedGroup === undefined) {
    const detail =
      "control groups cannot be created, but as root each RUN needs one that restricts its devices";
    return { check, status: unmet, detail, fix: fixFor(facts) };
  }
  const name = (names: readonly (typeof controllerNames)[number][]) =>
    names.map((each) => nouns[each]).join(", ");
  if (missing.length === 0)
    return { check, status: "ok", detail: `control groups: ${name(controllerNames)}` };
  const watched = missing.filter((each) => each !== "cpu");
  const details = [
    `no control group for ${name(missing)}`,
    ...(watched.length === 0
      ? []
      : [
          `${name(watched)} ${watched.length === 1 ? "is" : "are"} checked by bough itself, which may notice an excess a moment late`,
        ]),
    ...(missing.includes("cpu") ? ["--cpus is not supported"] : []),
  ];
  return { check, status: "warning", detail: details.join("; "), fix: fixFor(facts) };
}

function fixFor({ controllers, isRoot, hasVersionTwo, crowdedGroup: group }: LimitFacts): string {
  if (isRoot && group !== undefined)
    return `Move this container's processes into a group below: mkdir ${group}/init && xargs -rn1 < ${group}/cgroup.procs > ${group}/init/cgroup.procs`;
  if (isRoot) return "Mount /sys/fs/cgroup writable (inside of a container: --privileged).";
  // systemd gives a user's own groups some controllers, depending on its version.
  if (hasVersionTwo && Object.keys(controllers).length > 0)
    return "With systemd, as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory pids\\n' > /etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload. Then log in again.";
  if (hasVersionTwo)
    return "With systemd, if you have logged in (ssh, console or desktop; not su): systemd-run --user --scope -p Delegate=yes bough ... Or run bough as root.";
  return "Run bough as root, or start Linux with systemd.unified_cgroup_hierarchy=1.";
}

export function examineLimits(isRoot: boolean): LimitFacts {
  // As the engine does.
  makeRoomBelow(ownHierarchies());
  const hierarchies = ownHierarchies();
  const hasVersionTwo = !hierarchies.some(({ controllers }) => controllers.includes("memory"));
  const usable = hierarchies.filter((each) => each.version === 2 && hasVersionTwo && canMakeGroup(each));
  const crowdedGroup = usable.map(containerParent).find(isCrowded);
  return { controllers: usableControllers(hierarchies), isRoot, hasVersionTwo, crowdedGroup };
}
