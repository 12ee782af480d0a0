import type { Controllers } from "./controllers.ts";
import type { InstanceLimits } from "./limits.ts";

/** What runc's configuration says of limits. */
export interface LimitSettings {
  resources: Record<string, unknown>;
  rlimits: readonly { type: string; hard: number; soft: number }[];
  oomScoreAdj: number;
}

/** How readily the kernel ends a process when the machine itself runs out of memory (-1000 to 1000): before bough and others. */
const oomScore = 500;
/** Of 1024 that other processes have, and of 100 in version 2: where the processors are short, others come first. */
const cpuShares = 512;
const cpuWeight = 50;
/** Microseconds. Docker's. */
const cpuPeriod = 100_000;
/** What bough and its helpers may have running beside the command in one user namespace, where these count together. */
const processesOfBough = 512;

/** As far as the kernel can hold a container to its limits. `ownOomScore`: bough's own, than which nobody may have less. */
export function limitSettings(
  { memory, pids, cpu }: Controllers,
  limits: InstanceLimits,
  { inUserNamespace, ownOomScore }: { inUserNamespace: boolean; ownOomScore: number },
): LimitSettings {
  const rlimits: { type: string; hard: number; soft: number }[] = [];
  const rlimit = (type: string, value: number) => rlimits.push({ type, hard: value, soft: value });
  if (limits.layerBytes !== undefined) rlimit("RLIMIT_FSIZE", limits.layerBytes);
  // Counted for each user of a user namespace. The true limit is kept by looking, which can be too slow for a fork bomb.
  if (pids === undefined && inUserNamespace) rlimit("RLIMIT_NPROC", limits.processes + processesOfBough);
  const quota =
    limits.cpus === undefined ? {} : { period: cpuPeriod, quota: Math.round(limits.cpus * cpuPeriod) };
  return {
    resources: {
      // `swap` is memory and swap together: what is over the limit is not swapped out instead.
      ...(memory === undefined
        ? {}
        : { memory: { limit: limits.memory, ...(memory.countsSwap ? { swap: limits.memory } : {}) } }),
      ...(pids === undefined ? {} : { pids: { limit: limits.processes } }),
      ...(cpu?.version === 1 ? { cpu: { shares: cpuShares, ...quota } } : {}),
      ...(cpu?.version === 2 ? { cpu: quota, unified: { "cpu.weight": String(cpuWeight) } } : {}),
    },
    rlimits,
    oomScoreAdj: Math.max(oomScore, ownOomScore),
  };
}
