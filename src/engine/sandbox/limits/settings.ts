import { readFileSync } from "node:fs";
import type { Controllers } from "./controllers.ts";
import type { InstanceLimits } from "./limits.ts";
import { hardLimit, rlimitsOf } from "./ulimits.ts";

/** The limits in runc's configuration. */
export interface LimitSettings {
  resources: {
    memory?: { limit: number; swap?: number };
    pids?: { limit: number };
    cpu?: { shares?: number; period?: number; quota?: number };
    unified?: Record<string, string>;
  };
  /** Infinite: unlimited. */
  rlimits: readonly { type: string; hard: number; soft: number }[];
  oomScoreAdj: number;
}

/** OOM score adjustment (-1000 to 1000): if the machine runs out of memory, the kernel kills commands before bough. */
const oomScore = 500;
/** Half of the default (1024; 100 in version 2): other processes come first when processors are short. */
const cpuShares = 512;
const cpuWeight = 50;
/** Microseconds, as in Docker. */
const cpuPeriod = 100_000;
/** Processes that bough and its helpers may have beside the command in one user namespace, where they count together. */
const processesOfBough = 512;

/** The limits of bough's own process, which a command can't exceed. */
interface OwnLimits {
  oomScore: number;
  /** Hard limits: processes of this user, and bytes of a file. */
  processes: number;
  fileSize: number;
}

/** Returns the settings of those limits that the kernel can enforce. */
export function limitSettings(
  { memory, pids, cpu }: Controllers,
  limits: InstanceLimits,
  { inUserNamespace, own }: { inUserNamespace: boolean; own: OwnLimits },
): LimitSettings {
  const rlimits = rlimitsOf(limits.ulimits);
  const rlimit = (type: string, value: number) => {
    const { soft = value, hard = value } = rlimits.get(type) ?? {};
    rlimits.set(type, { soft: Math.min(soft, value), hard: Math.min(hard, value) });
  };
  if (limits.layerBytes !== undefined) rlimit("RLIMIT_FSIZE", Math.min(limits.layerBytes, own.fileSize));
  // Counted per user of a user namespace. Polling enforces the true limit, but can be too slow for a fork bomb.
  if (pids === undefined && inUserNamespace)
    rlimit("RLIMIT_NPROC", Math.min(limits.processes + processesOfBough, own.processes));
  const quota =
    limits.cpus === undefined ? {} : { period: cpuPeriod, quota: Math.round(limits.cpus * cpuPeriod) };
  return {
    resources: {
      // `swap` is the sum of memory and swap: a command over the limit is not swapped out instead.
      ...(memory === undefined
        ? {}
        : { memory: { limit: limits.memory, ...(memory.countsSwap ? { swap: limits.memory } : {}) } }),
      ...(pids === undefined ? {} : { pids: { limit: limits.processes } }),
      ...(cpu?.version === 1 ? { cpu: { shares: cpuShares, ...quota } } : {}),
      ...(cpu?.version === 2 ? { cpu: quota, unified: { "cpu.weight": String(cpuWeight) } } : {}),
    },
    rlimits: Array.from(rlimits, ([type, limit]) => ({ type, ...limit })),
    oomScoreAdj: Math.max(oomScore, own.oomScore),
  };
}

export function readOwnLimits(): OwnLimits {
  const limits = readFileSync("/proc/self/limits", "utf8");
  return {
    oomScore: Number(readFileSync("/proc/self/oom_score_adj", "utf8")),
    processes: hardLimit(limits, "Max processes"),
    fileSize: hardLimit(limits, "Max file size"),
  };
}
