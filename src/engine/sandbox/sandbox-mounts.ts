/** Everything that is mounted in a sandbox. */
import type { SandboxNetwork } from "../network/networks.ts";
import { hasGroup, type KernelViews } from "../system/user-namespace.ts";
import type { ContainerRuntime } from "./runtime/runtime.ts";

/** A file of this machine and its path in the sandbox, which contains no symbolic links of the image. */
interface FileMount {
  source: string;
  destination: string;
}

/** A mount of the request, in the form of runc's configuration. Its destination contains no symbolic links. */
export interface SandboxMount extends FileMount {
  type: "bind" | "tmpfs";
  options: readonly string[];
}

export interface MountOptions {
  /** Files that are mounted over the image's. */
  files: readonly FileMount[];
  hasReadonlyFiles: boolean;
  /** The request's mounts, which are made after everything else, in this order. */
  mounts: readonly SandboxMount[];
  inUserNamespace: boolean;
  /** The file systems of the kernel that can be mounted. In place of the others the sandbox has this machine's. */
  views: KernelViews;
  network: SandboxNetwork;
  /** Directories of the command's control groups, by their names in `/sys/fs/cgroup`; version 2's has the name "". */
  groups: Readonly<Record<string, string>>;
  /** The size of `/dev/shm`; `undefined` for Docker's default. */
  shmBytes?: number | undefined;
  runtime: ContainerRuntime;
}

/** Docker's default size of `/dev/shm`. */
const defaultShmBytes = 64 * 1024 ** 2;
/** The group `tty`, to which terminals belong. */
const terminalGroup = 5;

/** Returns the mounts in their order, in the form of runc's configuration. */
export function mountsOf(options: MountOptions): object[] {
  const { shmBytes = defaultShmBytes } = options;
  return [
    options.views.proc
      ? mount("/proc", "proc", "proc", ["nosuid", "noexec", "nodev"])
      : mount("/proc", "bind", "/proc", ["rbind", "nosuid", "noexec", "nodev"]),
    mount("/dev", "tmpfs", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
    mount("/dev/pts", "devpts", "devpts", [
      "nosuid",
      "noexec",
      "newinstance",
      "ptmxmode=0666",
      "mode=0620",
      // Linux refuses a group that the user namespace does not have.
      ...(hasGroup(terminalGroup) ? [`gid=${terminalGroup}`] : []),
    ]),
    mount("/dev/shm", "tmpfs", "shm", ["nosuid", "noexec", "nodev", "mode=1777", sizeOption(shmBytes)]),
    mount("/dev/mqueue", "mqueue", "mqueue", ["nosuid", "noexec", "nodev"]),
    ...sysfs(options),
    ...fileMounts(options),
    ...options.mounts,
  ];
}

/** Returns the mounts of single files. Read-only ones have Docker's options. */
function fileMounts({ files, hasReadonlyFiles }: MountOptions): object[] {
  const options = hasReadonlyFiles ? ["nodev", "noexec", "nosuid", "rbind", "ro"] : ["bind", "rw"];
  return files.map(({ source, destination }) => mount(destination, "bind", source, options));
}

/**
 * Returns the mounts of `/sys`. A user namespace can't mount the sysfs of a network that it doesn't own: it gets the machine's, without
 * its control groups.
 */
function sysfs(options: MountOptions): object[] {
  const flags = ["nosuid", "noexec", "nodev", "ro"];
  return [
    !options.views.sysfs || (options.inUserNamespace && options.network.kind === "host")
      ? // rro: read-only, with everything mounted below it.
        mount("/sys", "none", "/sys", ["rbind", ...flags, "rro"])
      : mount("/sys", "sysfs", "sysfs", flags),
    ...controlGroups(options, flags),
  ];
}

function controlGroups({ inUserNamespace, groups, runtime }: MountOptions, flags: string[]): object[] {
  const place = "/sys/fs/cgroup";
  // A user namespace may mount version 2, which shows it the command's group. Without one, that would be bough's.
  const type = inUserNamespace && groups[""] === undefined ? "tmpfs" : "cgroup";
  // crun treats this type as the single hierarchy of version 2. For version 1 it would mount copies of its own.
  if (runtime.makesGroups || groups[""] !== undefined) return [mount(place, type, type, flags)];
  const shown = inUserNamespace ? [] : Object.entries(groups);
  return [
    mount(place, "tmpfs", "tmpfs", [...flags, "mode=755"]),
    ...shown.map(([name, directory]) => mount(`${place}/${name}`, "bind", directory, ["bind", ...flags])),
  ];
}

function mount(destination: string, type: string, source: string, options: readonly string[]): object {
  return { destination, type, source, options };
}

function sizeOption(bytes: number): string {
  return `size=${bytes % 1024 === 0 ? `${bytes / 1024}k` : bytes}`;
}
