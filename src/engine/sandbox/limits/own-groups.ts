/**
 * Control groups that bough makes itself, for a runtime that is started inside them. Limits on a parent of the runtime's own groups
 * would not do: the kernel counts what it refused or killed in the group of the process (processes before Linux 6.11, and everything
 * in version 1), and crun removes that group. A user would see a failed step without the limit that it ran into.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { readOptional } from "../../../open-for-reading.ts";
import { errorCode } from "../../../system-error.ts";
import { canMakeGroup, containerParent, type Hierarchy, isWritable, linesOf } from "./controllers.ts";
import { restrictDevices } from "./device-program.ts";
import type { LimitSettings } from "./limits.ts";

/** A container's groups. */
export interface OwnGroups {
  name: string;
  /** Their directories by controller; version 2's is named "". */
  directories: Readonly<Record<string, string>>;
  /** The same directories by their names in a sandbox's `/sys/fs/cgroup`; version 2's is `/sys/fs/cgroup` itself, "". */
  views: Readonly<Record<string, string>>;
  /** The files to which a process writes 0 to enter the groups. */
  entries: readonly string[];
  /** Applies the settings to the groups. Allows one more process: the runtime that waits for the command. */
  limit(settings: LimitSettings): void;
  /** Sets the maximum number of processes, to which `runtimes` are added: programs that wait for a process of the sandbox. */
  allowProcesses(limit: number, runtimes: number): void;
}

/** Returns the version whose groups bough makes. Beside version 1 there may be a version 2 that limits nothing. */
export function groupVersion(hierarchies: readonly Hierarchy[]): 1 | 2 {
  return hierarchies.some(({ version }) => version === 1) ? 1 : 2;
}

/**
 * Makes a group in each hierarchy of the version that `groupVersion` returns, as runc would, without limits yet.
 *
 * @param openDevices devices that may be opened, as `c major:minor`; any can be made. It is `undefined` in a user namespace, which can't
 * make devices; hierarchies to which it may not write are skipped
 * @param record called with the directories before any exists
 */
export function makeGroups(
  name: string,
  hierarchies: readonly Hierarchy[],
  openDevices: readonly string[] | undefined,
  record: (directories: OwnGroups["directories"]) => void,
): OwnGroups {
  const version = groupVersion(hierarchies);
  const own = hierarchies
    .filter((each) => each.version === version && (openDevices !== undefined || canMakeGroup(each)))
    .map((each) => ({ ...each, parent: containerParent(each), group: join(containerParent(each), name) }));
  const directories = Object.fromEntries(
    own.flatMap(({ controllers, group }) => (version === 2 ? [""] : controllers).map((key) => [key, group])),
  );
  const views: Record<string, string> = {};
  record(directories);
  for (const { controllers, mountPoint, parent, group } of own) {
    mkdirSync(group);
    // In version 1, a cpuset group begins without processors, and no process can enter it.
    if (controllers.includes("cpuset"))
      for (const file of ["cpuset.cpus", "cpuset.mems"]) inherit(parent, group, file);
    if (version === 2 && openDevices !== undefined) restrictDevices(group, openDevices);
    // The name of the mount point lists all of its controllers; each also has a link to it.
    for (const view of version === 2 ? [""] : [basename(mountPoint), ...controllers])
      if (!view.includes("=")) views[view] = group;
  }
  const write = (controller: string, file: string, value: string | number | undefined) => {
    const directory = directories[controller];
    if (value === undefined) return;
    if (directory === undefined) throw new Error(`there is no control group for ${file}`);
    writeFileSync(join(directory, file), String(value));
  };
  const allowProcesses = (limit: number, runtimes: number) =>
    write(version === 1 ? "pids" : "", "pids.max", limit + runtimes);
  if (version === 1 && openDevices !== undefined) {
    write("devices", "devices.deny", "a");
    for (const rule of ["c *:* m", "b *:* m", ...openDevices.map((device) => `${device} rwm`)])
      write("devices", "devices.allow", rule);
  }
  return {
    name,
    directories,
    views,
    entries: own.map(({ group }) => join(group, "cgroup.procs")),
    limit(settings) {
      const { pids } = settings.resources;
      const files = version === 1 ? filesOfOne(settings) : filesOfTwo(settings);
      for (const [controller, file, value] of files) write(controller, file, value);
      if (pids !== undefined) allowProcesses(pids.limit, 1);
    },
    allowProcesses(limit, runtimes) {
      try {
        allowProcesses(limit, runtimes);
      } catch {
        // The command has ended, and its groups are gone; or processes are not counted by them.
      }
    },
  };
}

type Setting = [controller: string, file: string, value: string | number | undefined];

function filesOfOne({ resources: { memory, cpu } }: LimitSettings): Setting[] {
  return [
    ["memory", "memory.limit_in_bytes", memory?.limit],
    ["memory", "memory.memsw.limit_in_bytes", memory?.swap],
    ["cpu", "cpu.shares", cpu?.shares],
    ["cpu", "cpu.cfs_period_us", cpu?.period],
    ["cpu", "cpu.cfs_quota_us", cpu?.quota],
  ];
}

/** In version 2, the swap limit excludes memory. */
function filesOfTwo({ resources: { memory, cpu, unified = {} } }: LimitSettings): Setting[] {
  return [
    ["", "memory.max", memory?.limit],
    ["", "memory.swap.max", memory?.swap === undefined ? undefined : memory.swap - memory.limit],
    ["", "cpu.max", cpu?.quota === undefined ? undefined : `${cpu.quota} ${cpu.period}`],
    ...Object.entries(unified).map(([file, value]): Setting => ["", file, value]),
  ];
}

function inherit(parent: string, directory: string, name: string): void {
  writeFileSync(join(directory, name), readFileSync(join(parent, name), "utf8").trim());
}

/** A shell script that enters the groups whose entries are its arguments, up to `--`. */
export const enterGroups = `while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done
shift`;

/** The group below a unit's or container's group in which its processes are. No unit of systemd has such a name. */
const groupName = "bough";

/**
 * Moves all processes of this process's group to a group below it, so that what limits the group, such as a systemd service's
 * MemoryMax, limits commands, too: their groups are made beside the process's own (`containerParent`), and only a group without
 * processes can limit groups below it. Does nothing in version 1, where any group can, or where that is not allowed.
 */
export function moveProcessesBelow(hierarchies: readonly Hierarchy[]): void {
  const [own] = hierarchies;
  if (own === undefined || hierarchies.some(({ version }) => version === 1)) return;
  const { directory } = own;
  if (basename(directory) === groupName || !canBeEmptied(directory)) return;
  const below = join(directory, groupName);
  try {
    mkdirSync(below, { recursive: true });
    // This process is the last one: if another can't be moved, it stays where groups can be limited beside it.
    moveAll(directory, below, [process.pid]);
    moveAll(directory, below, []);
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    // The processes stay, and groups are made beside the unit's.
  }
}

/** The machine's root group has no type, and may have processes beside groups. */
function canBeEmptied(directory: string): boolean {
  const isDomain = readOptional(join(directory, "cgroup.type")).startsWith("domain");
  return isDomain && isWritable(directory) && isWritable(join(directory, "cgroup.procs"));
}

/** Moves all processes, also those that others start meanwhile. */
function moveAll(from: string, to: string, except: readonly number[]): void {
  for (;;) {
    const members = linesOf(readOptional(join(from, "cgroup.procs"))).map(Number);
    const others = members.filter((pid) => !except.includes(pid));
    if (others.length === 0) return;
    for (const pid of others) move(pid, to);
  }
}

/** Moves a process. The kernel reports 0 for one of another PID namespace, but would take a written 0 for the writer. */
function move(pid: number, to: string): void {
  if (pid === 0) throw Object.assign(new Error("a process is out of reach"), { code: "EPERM" });
  try {
    writeFileSync(join(to, "cgroup.procs"), String(pid));
  } catch (error) {
    // With ESRCH it has ended.
    if (errorCode(error) !== "ESRCH") throw error;
  }
}
