import type { TerminalSize } from "../../service/wire/instance.ts";
import type { SandboxNetwork } from "../network/networks.ts";
import { thermalThrottleDirectories } from "../system/machine.ts";
import type { LimitSettings } from "./limits/settings.ts";
import type { ContainerRuntime } from "./runtime/runtime.ts";
import { seccompFilter } from "./seccomp.ts";

/** A process in a sandbox, in terms of the image. */
export interface SandboxProcess {
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  /** Variables of this process only, which no record contains. */
  secretEnv?: Readonly<Record<string, string>>;
  cwd: string;
  uid: number;
  gid: number;
  additionalGids: readonly number[];
  home: string;
  /** The initial size of the terminal for its standard streams; `undefined` if it has none. */
  terminal?: TerminalSize | undefined;
}

/**
 * Docker's default set without `CAP_NET_RAW`, which reads other processes' packets: a command has it only in a network of its
 * own. `CAP_MKNOD` is harmless: the control group for devices prevents root from opening the devices it makes, and a user
 * namespace can't make any.
 */
const capabilities = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FSETID",
  "CAP_FOWNER",
  "CAP_MKNOD",
  "CAP_SETGID",
  "CAP_SETUID",
  "CAP_SETFCAP",
  "CAP_SETPCAP",
  "CAP_NET_BIND_SERVICE",
  "CAP_SYS_CHROOT",
  "CAP_KILL",
  "CAP_AUDIT_WRITE",
];

/** Docker's list. */
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

/** Docker's list. */
const readonlyPaths = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/**
 * The directory that version 1 control groups are mounted in; runc leaves it writable. crun would cover it with a copy in which
 * the groups are writable; what it mounts there is read-only already.
 */
const furtherReadonlyPaths = { runc: ["/sys/fs/cgroup"], crun: [] };

/** Devices that may be opened, as `major:minor`: null, zero, random, urandom, tty, console. Docker's list. */
const dockersDevices = ["1:3", "1:5", "1:8", "1:9", "5:0", "5:1"];
/**
 * Devices that runc adds: full, ptmx and pseudo-terminals. runc also adds /dev/net/tun, which is useless without a capability
 * that no command has.
 */
const furtherDevices = ["1:7", "5:2", "136:*"];

/** All devices that may be opened, in the syntax of a device control group's rules. */
export const openDevices = [...dockersDevices, ...furtherDevices].map((numbers) => `c ${numbers}`);

/** A file of this machine and its path in the sandbox, which contains no symbolic links of the image. */
interface FileMount {
  source: string;
  destination: string;
}

/** A mount that the request asks for, in runc's terms. Its destination contains no symbolic links. */
export interface SandboxMount extends FileMount {
  type: "bind" | "tmpfs";
  options: readonly string[];
}

export interface SandboxConfigOptions {
  root: string;
  /** The path of its working directory contains no symbolic links of the image. */
  process: SandboxProcess;
  hostname: string;
  /** Mounted over the image's files. */
  files: readonly FileMount[];
  hasReadonlyFiles: boolean;
  /** Mounted after everything else, in this order. */
  mounts: readonly SandboxMount[];
  inUserNamespace: boolean;
  network: SandboxNetwork;
  /** The name that the OCI image specification uses. */
  architecture: string;
  limits: LimitSettings;
  /** Directories of the control groups that bough has made, by their names in `/sys/fs/cgroup`; version 2's has the name "". */
  groups: Readonly<Record<string, string>>;
  runtime: ContainerRuntime;
}

/** The parts of an OCI runtime configuration. */
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
  const compiled = runtime.kind === "crun" ? runtime.filter : undefined;
  return {
    ociVersion: "1.0.2",
    process: processConfig(options),
    root: { path: options.root, readonly: false },
    hostname: options.hostname,
    mounts: [
      mount("/proc", "proc", "proc", ["nosuid", "noexec", "nodev"]),
      mount("/dev", "tmpfs", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
      mount("/dev/pts", "devpts", "devpts", [
        "nosuid",
        "noexec",
        "newinstance",
        "ptmxmode=0666",
        "mode=0620",
        "gid=5",
      ]),
      mount("/dev/shm", "tmpfs", "shm", ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
      mount("/dev/mqueue", "mqueue", "mqueue", ["nosuid", "noexec", "nodev"]),
      ...sysfs(options),
      ...fileMounts(options),
      ...options.mounts,
    ],
    linux: {
      namespaces: [
        { type: "pid" },
        { type: "ipc" },
        { type: "uts" },
        { type: "mount" },
        { type: "cgroup" },
        ...networkNamespace(network),
      ],
      ...(runtime.kind === "runc" ? { resources: resourcesOf(options.limits) } : {}),
      maskedPaths: [...maskedPaths, ...thermalThrottleDirectories()],
      readonlyPaths: [...readonlyPaths, ...furtherReadonlyPaths[runtime.kind]],
      ...networkSettings(options.inUserNamespace, network),
      seccomp: compiled === undefined ? callFilter(options.architecture, network) : refuseAll,
    },
    ...(compiled === undefined ? {} : { annotations: { "run.oci.seccomp_bpf_data": compiled } }),
  };
}

/** Docker's rules: mknod is allowed, but not opening the devices it makes, so the machine's disks stay out of reach. */
function resourcesOf({ resources }: LimitSettings): object {
  return { ...resources, devices: [{ allow: false, access: "rwm" }, ...dockersDevices.map(allowDevice)] };
}

/** A filter for crun beside a compiled one, since it requires one. If crun applied it, no command could do anything. */
const refuseAll = { defaultAction: "SCMP_ACT_ERRNO" };

/** Returns the system call filter. Only the network "none" changes it, by one capability. */
export function callFilter(architecture: string, network: Pick<SandboxNetwork, "kind">): object {
  return seccompFilter(architecture, grantedWith(network));
}

/** Returns the configuration of a process in the sandbox: the command, or a process that is started beside it. */
export function processConfig({
  process: command,
  network,
  limits,
  runtime,
}: Pick<SandboxConfigOptions, "process" | "network" | "limits" | "runtime">): SandboxConfig["process"] {
  const granted = grantedWith(network);
  const effective = command.uid === 0 ? granted : [];
  return {
    ...(command.terminal === undefined
      ? { terminal: false }
      : {
          terminal: true,
          consoleSize: { width: command.terminal.columns, height: command.terminal.rows },
        }),
    user: { uid: command.uid, gid: command.gid, additionalGids: command.additionalGids },
    args: command.args,
    env: Object.entries({ ...command.env, ...command.secretEnv, ...homeFor(command, runtime) }).map(
      ([name, value]) => `${name}=${value}`,
    ),
    cwd: command.cwd,
    capabilities: { bounding: granted, effective, permitted: effective },
    noNewPrivileges: false,
    rlimits: limits.rlimits,
    oomScoreAdj: limits.oomScoreAdj,
  };
}

/** runc sets HOME from the image's tables. crun leaves it unset for a user who is in no table. An empty HOME counts as unset. */
function homeFor(
  { env, secretEnv, home }: SandboxProcess,
  { kind }: ContainerRuntime,
): Record<string, string> {
  return kind === "crun" && (secretEnv?.HOME ?? env.HOME ?? "") === "" ? { HOME: home } : {};
}

function grantedWith(network: Pick<SandboxNetwork, "kind">): readonly string[] {
  return network.kind === "none" ? [...capabilities, "CAP_NET_RAW"] : capabilities;
}

/**
 * runc is the first process in its `/proc`, and inherits a directory of namespaces as descriptor 3. The machine's own `/proc` is
 * not visible there, and `self` would be the process that runc moves into the namespace, which has other descriptors.
 */
const privateNamespace = "/proc/1/fd/3/net";

/** Without a path, runc makes a network namespace with its loopback up. */
function networkNamespace(network: SandboxNetwork): object[] {
  switch (network.kind) {
    case "private":
      return [{ type: "network", path: privateNamespace }];
    case "none":
      return [{ type: "network" }];
    case "host":
      return [];
  }
}

/** Docker's: any user may bind any port, and ping without raw packets, for which a user namespace lacks the group ids. */
function networkSettings(inUserNamespace: boolean, network: SandboxNetwork): object {
  if (network.kind === "host") return {};
  const ping = inUserNamespace ? {} : { "net.ipv4.ping_group_range": "0 2147483647" };
  return { sysctl: { "net.ipv4.ip_unprivileged_port_start": "0", ...ping } };
}

/** Read-only files have Docker's options. */
function fileMounts({ files, hasReadonlyFiles }: SandboxConfigOptions): object[] {
  const options = hasReadonlyFiles ? ["nodev", "noexec", "nosuid", "rbind", "ro"] : ["bind", "rw"];
  return files.map(({ source, destination }) => mount(destination, "bind", source, options));
}

/** A user namespace can't mount the sysfs of a network that it doesn't own. It gets the machine's, without its control groups. */
function sysfs(options: SandboxConfigOptions): object[] {
  const flags = ["nosuid", "noexec", "nodev", "ro"];
  return [
    options.inUserNamespace && options.network.kind === "host"
      ? // rro: read-only, with everything mounted below it.
        mount("/sys", "none", "/sys", ["rbind", ...flags, "rro"])
      : mount("/sys", "sysfs", "sysfs", flags),
    ...controlGroups(options, flags),
  ];
}

function controlGroups(
  { inUserNamespace, groups, runtime }: SandboxConfigOptions,
  flags: string[],
): object[] {
  const place = "/sys/fs/cgroup";
  const type = inUserNamespace ? "tmpfs" : "cgroup";
  // crun treats this type as the single hierarchy of version 2. For version 1 it would mount copies of its own.
  if (runtime.kind === "runc" || (groups[""] !== undefined && !inUserNamespace))
    return [mount(place, type, type, flags)];
  const shown = inUserNamespace ? [] : Object.entries(groups);
  return [
    mount(place, "tmpfs", "tmpfs", [...flags, "mode=755"]),
    ...shown.map(([name, directory]) => mount(`${place}/${name}`, "bind", directory, ["bind", ...flags])),
  ];
}

function allowDevice(numbers: string): object {
  const [major, minor] = numbers.split(":").map(Number);
  return { allow: true, type: "c", major, minor, access: "rwm" };
}

function mount(destination: string, type: string, source: string, options: readonly string[]): object {
  return { destination, type, source, options };
}
