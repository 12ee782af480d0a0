/** What runs in a sandbox, in terms of the image. */
export interface SandboxProcess {
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string;
  uid: number;
  gid: number;
  additionalGids: readonly number[];
}

/** Docker's default set. */
const capabilities = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FSETID",
  "CAP_FOWNER",
  "CAP_MKNOD",
  "CAP_NET_RAW",
  "CAP_SETGID",
  "CAP_SETUID",
  "CAP_SETFCAP",
  "CAP_SETPCAP",
  "CAP_NET_BIND_SERVICE",
  "CAP_SYS_CHROOT",
  "CAP_KILL",
  "CAP_AUDIT_WRITE",
];

/** Docker's. */
const maskedPaths = [
  "/proc/asound",
  "/proc/acpi",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
];

/** Docker's. */
const readonlyPaths = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/** What is mounted inside, and so must not show up in a layer. */
export const mountPoints = [
  { path: "/proc", isDirectory: true },
  { path: "/sys", isDirectory: true },
  { path: "/dev", isDirectory: true },
  { path: "/etc/resolv.conf", isDirectory: false },
  { path: "/etc/hosts", isDirectory: false },
] as const;

/**
 * runc's configuration (OCI runtime specification 1.0.2) for one command: Docker's defaults but for the network, which is
 * the machine's own.
 */
export function sandboxConfig(options: {
  root: string;
  process: SandboxProcess;
  hostname: string;
  /** Files on this machine that the sandbox sees as `/etc/resolv.conf` and `/etc/hosts`. */
  resolvConf: string;
  hosts: string;
  inUserNamespace: boolean;
}): object {
  const { process: command } = options;
  const effective = command.uid === 0 ? capabilities : [];
  return {
    ociVersion: "1.0.2",
    process: {
      terminal: false,
      user: { uid: command.uid, gid: command.gid, additionalGids: command.additionalGids },
      args: command.args,
      env: Object.entries(command.env).map(([name, value]) => `${name}=${value}`),
      cwd: command.cwd,
      capabilities: { bounding: capabilities, effective, permitted: effective },
      noNewPrivileges: false,
    },
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
      ...sysfs(options.inUserNamespace),
      mount("/etc/resolv.conf", "bind", options.resolvConf, ["bind", "rw"]),
      mount("/etc/hosts", "bind", options.hosts, ["bind", "rw"]),
    ],
    linux: {
      namespaces: [{ type: "pid" }, { type: "ipc" }, { type: "uts" }, { type: "mount" }],
      resources: {
        // mknod is allowed, as in Docker, but not the use of what it makes: the machine's disks stay out of reach.
        devices: [
          { allow: false, access: "rwm" },
          { allow: true, type: "c", access: "m" },
          { allow: true, type: "b", access: "m" },
        ],
      },
      maskedPaths,
      readonlyPaths,
    },
  };
}

/** A user namespace can't mount the sysfs of a network that it doesn't own, and gets the machine's without its control groups. */
function sysfs(inUserNamespace: boolean): object[] {
  const options = ["nosuid", "noexec", "nodev", "ro"];
  if (!inUserNamespace) return [mount("/sys", "sysfs", "sysfs", options)];
  return [
    mount("/sys", "none", "/sys", ["rbind", ...options]),
    mount("/sys/fs/cgroup", "tmpfs", "tmpfs", options),
  ];
}

function mount(destination: string, type: string, source: string, options: readonly string[]): object {
  return { destination, type, source, options };
}
