/** Control groups of version 1 that bough makes itself, for a runtime that is started inside of them. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { isWritable } from "./controllers.ts";
import { containerParent, type Hierarchy } from "./hierarchies.ts";
import type { LimitSettings } from "./settings.ts";

/** A container's groups. */
export interface OwnGroups {
  name: string;
  /** Their directories by controller. */
  directories: Readonly<Record<string, string>>;
  /** The same as a sandbox sees them, by the names of their places in `/sys/fs/cgroup`. */
  views: Readonly<Record<string, string>>;
  /** The files that a process writes 0 to, to be in them. */
  entries: readonly string[];
  /** Holds what is in them to the settings; of processes there may be one more, the runtime that waits for the command. */
  limit(settings: LimitSettings): void;
  /** Sets how many processes there may be, beside so many runtimes: programs that wait for a process of the sandbox. */
  allowProcesses(limit: number, runtimes: number): void;
}

/**
 * Makes a group in each hierarchy of version 1, as runc would, without limits as yet. `openDevices`: those that may be
 * opened, as `c major:minor`; any can be made. `undefined` in a user namespace: no device can be made in there, and hierarchies
 * that are not its own to write to are passed over.
 */
export function makeGroups(
  name: string,
  hierarchies: readonly Hierarchy[],
  openDevices: readonly string[] | undefined,
): OwnGroups {
  const directories: Record<string, string> = {};
  const views: Record<string, string> = {};
  const entries: string[] = [];
  for (const hierarchy of hierarchies) {
    const parent = containerParent(hierarchy);
    if (hierarchy.version !== 1 || (openDevices === undefined && !isWritable(parent))) continue;
    const directory = join(parent, name);
    mkdirSync(directory);
    // A group of cpuset begins with none, and nobody can be in it then.
    if (hierarchy.controllers.includes("cpuset"))
      for (const file of ["cpuset.cpus", "cpuset.mems"]) inherit(parent, directory, file);
    for (const controller of hierarchy.controllers) directories[controller] = directory;
    // The mount point of several controllers names them all; each has a link to it.
    for (const view of [basename(hierarchy.mountPoint), ...hierarchy.controllers])
      if (!view.includes("=")) views[view] = directory;
    entries.push(join(directory, "cgroup.procs"));
  }
  const write = (controller: string, file: string, value: string | number | undefined) => {
    const directory = directories[controller];
    if (value === undefined) return;
    if (directory === undefined) throw new Error(`there is no control group for ${file}`);
    writeFileSync(join(directory, file), String(value));
  };
  if (openDevices !== undefined) {
    write("devices", "devices.deny", "a");
    for (const rule of ["c *:* m", "b *:* m", ...openDevices.map((device) => `${device} rwm`)])
      write("devices", "devices.allow", rule);
  }
  return {
    name,
    directories,
    views,
    entries,
    limit({ resources: { memory, pids, cpu } }) {
      write("memory", "memory.limit_in_bytes", memory?.limit);
      write("memory", "memory.memsw.limit_in_bytes", memory?.swap);
      write("cpu", "cpu.shares", cpu?.shares);
      write("cpu", "cpu.cfs_period_us", cpu?.period);
      write("cpu", "cpu.cfs_quota_us", cpu?.quota);
      write("pids", "pids.max", pids === undefined ? undefined : pids.limit + 1);
    },
    allowProcesses(limit, runtimes) {
      try {
        write("pids", "pids.max", limit + runtimes);
      } catch {
        // The command has ended, and its groups are gone; or processes are counted elsewhere.
      }
    },
  };
}

function inherit(parent: string, directory: string, name: string): void {
  writeFileSync(join(directory, name), readFileSync(join(parent, name), "utf8").trim());
}

/** A shell's commands that enter the groups whose entries are its arguments, up to `--`. */
export const enterGroups = `while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done
shift`;
