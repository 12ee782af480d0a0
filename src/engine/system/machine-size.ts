import { readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";

/** The machine's resources. */
export interface MachineSize {
  /** Bytes. */
  memory: number;
  processors: number;
  /** Processes and threads. */
  maxProcesses: number;
}

/** `memoryLimit`: the memory that this process's own control groups allow. */
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
