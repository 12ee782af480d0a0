import { existsSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";

/** Returns the sysfs directories with counters of overheating processors, which reveal other processes' work (GHSA-6fw5-f8r9-fgfm). */
export function thermalThrottleDirectories(sysfs = "/sys/devices/system/cpu"): string[] {
  const counters = (cpu: string) => join(sysfs, cpu, "thermal_throttle");
  // Either all processors of a machine have them or none, and there can be hundreds.
  if (!existsSync(counters("cpu0"))) return [];
  return readdirSync(sysfs)
    .filter((name) => /^cpu\d+$/.test(name))
    .map(counters)
    .filter((path) => existsSync(path));
}

/** The machine's resources. */
export interface MachineSize {
  /** Bytes. */
  memory: number;
  processors: number;
  /** Processes and threads. */
  maxProcesses: number;
}

/** Measures the machine. `memoryLimit` is the memory that this process's own control groups allow. */
export function measureMachine(memoryLimit: number | undefined): MachineSize {
  const settings = ["pid_max", "threads-max"].map((name) =>
    Number(readFileSync(`/proc/sys/kernel/${name}`, "utf8")),
  );
  return {
    memory: Math.min(totalmem(), memoryLimit ?? Number.POSITIVE_INFINITY),
    processors: availableParallelism(),
    maxProcesses: Math.min(...settings),
  };
}
