import { readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";

/** What there is to share. */
export interface MachineSize {
  /** Bytes. */
  memory: number;
  processors: number;
  /** Processes and threads. */
  maxProcesses: number;
}

/** `memoryLimit`: what of the memory this process's own control groups leave. */
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
