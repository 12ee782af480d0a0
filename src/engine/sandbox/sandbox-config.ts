import { thermalThrottleDirectories } from "../system/machine.ts";
import type { LimitSettings } from "./limits/limits.ts";
import { type MountOptions, mountsOf } from "./sandbox-mounts.ts";
import { grantedWith, type ProcessOptions, processConfig } from "./sandbox-process.ts";

/** Files of the kernel that are hidden: Docker's list. */
const maskedPaths = [
  "/proc/acpi",
  "/proc/asound",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/sys/devices/virtual/powercap",
  "/sys/firmware",
];

/** Files of the kernel that are read-only: Docker's list. */
const readonlyPaths = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/**
 * The directory in which version 1 control groups are mounted, which runc leaves writable. It is not listed for crun, which would cover
 * it with a copy in which the groups are writable: what bough has crun mount there is already read-only.
 */
const groupPaths = ["/sys/fs/cgroup"];

/** Devices that may be opened, as `major:minor`: null, zero, random, urandom, tty, console. Docker's list. */
const dockerDevices = ["1:3", "1:5", "1:8", "1:9", "5:0", "5:1"];
/**
 * Devices that runc adds: full, ptmx and pseudo-terminals. runc also adds /dev/net/tun, after the configuration's rules, so that
 * none of them can deny it. It is useless without a capability that no command has.
 */
const furtherDevices = ["1:7", "5:2", "136:*"];

/** All devices that may be opened, in the syntax of a device control group's rules. */
export const openDevices = [...dockerDevices, ...furtherDevices].map((numbers) => `c ${numbers}`);

export interface SandboxConfigOptions extends ProcessOptions, MountOptions {
  root: string;
  hostname: string;
  /** The machine's architecture, as the OCI image specification spells it. */
  architecture: string;
  /** The first process in the sandbox's mount namespace, whose descriptor 3 is a directory of namespaces. */
  helper: number;
}

/** The parts of an OCI runtime configuration that bough sets. */
interface SandboxConfig {
  ociVersion: string;
  process: object;
  root: object;
  hostname: string;
  mounts: readonly object[];
  linux: object;
  annotations?: Readonly<Record<string, string>>;
}

/**
 * Returns the configuration (OCI runtime specification 1.0.2) for one command, with Docker's defaults.
 * test/hostile/runs/docker-defaults.test.ts lists each difference and its reason.
 */
export function sandboxConfig(options: SandboxConfigOptions): SandboxConfig {
  const { network, runtime } = options;
  const { seccomp, annotations } = runtime.filter(options.architecture, grantedWith(network));
  return {
    ociVersion: "1.0.2",
    process: processConfig(options),
    root: { path: options.root, readonly: false },
    hostname: options.hostname,
    mounts: mountsOf(options),
    linux: {
      namespaces: [
        { type: "pid" },
        { type: "ipc" },
        { type: "uts" },
        { type: "mount" },
        { type: "cgroup" },
        ...networkNamespace(options),
      ],
      ...(runtime.makesGroups ? { resources: resourcesOf(options.limits) } : {}),
      maskedPaths: [...maskedPaths, ...thermalThrottleDirectories()],
      readonlyPaths: [...readonlyPaths, ...(runtime.makesGroups ? groupPaths : [])],
      ...networkSettings(options),
      seccomp,
    },
    ...(annotations === undefined ? {} : { annotations }),
  };
}

/** Docker's rules: mknod is allowed, but not opening the devices it makes, so the machine's disks stay out of reach. */
function resourcesOf({ resources }: LimitSettings): object {
  return { ...resources, devices: [{ allow: false, access: "rwm" }, ...dockerDevices.map(allowDevice)] };
}

/**
 * runc is the first process in its `/proc`, and inherits a directory of namespaces as descriptor 3. `self` would be the process that
 * runc moves into the namespace, which has other descriptors. Where it has the machine's `/proc`, the helper has that directory, too.
 */
function privateNamespace({ views, helper }: SandboxConfigOptions): string {
  return `/proc/${views.proc ? 1 : helper}/fd/3/net`;
}

/** Without a path, runc makes a network namespace with its loopback up. */
function networkNamespace(options: SandboxConfigOptions): object[] {
  switch (options.network.kind) {
    case "private":
      return [{ type: "network", path: privateNamespace(options) }];
    case "none":
      return [{ type: "network" }];
    case "host":
      return [];
  }
}

/** Returns Docker's settings: any user may bind any port, and may ping without raw packets (a user namespace lacks the group IDs for that). */
function networkSettings({ inUserNamespace, network, views }: SandboxConfigOptions): object {
  // /proc/sys is read-only in a container's /proc.
  if (network.kind === "host" || !views.proc) return {};
  const ping = inUserNamespace ? {} : { "net.ipv4.ping_group_range": "0 2147483647" };
  return { sysctl: { "net.ipv4.ip_unprivileged_port_start": "0", ...ping } };
}

function allowDevice(numbers: string): object {
  const [major, minor] = numbers.split(":").map(Number);
  return { allow: true, type: "c", major, minor, access: "rwm" };
}
