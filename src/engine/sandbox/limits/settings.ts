import { readFileSync } from "node:fs";
import type { Controllers } from "./controllers.ts";
import type { InstanceLimits } from "./limits.ts";

/** The limits in runc's configuration. */
export interface LimitSettings {
  resources: {
    memory?: { limit: number; swap?: number };
    pids?: { limit: number };
    cpu?: { shares?: number; period?: number; quota?: number };
    unified?: Record<string, string>;
  };
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
  const rlimits: { type: string; hard: number; soft: number }[] = [];
  const rlimit = (type: string, value: number) => rlimits.push({ type, hard: value, soft: value });
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
    rlimits,
    oomScoreAdj: Math.max(oomScore, own.oomScore),
  };
}

export function readOwnLimits(): OwnLimits {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const hard = (name: string) => {
    const [, value] = new RegExp(`^${name}\\s+\\S+\\s+(\\d+)`, "m").exec(limits) ?? [];
    return value === undefined ? Number.POSITIVE_INFINITY : Number(value);
  };
  return {
    oomScore: Number(readFileSync("/proc/self/oom_score_adj", "utf8")),
    processes: hard("Max processes"),
    fileSize: hard("Max file size"),
  };
}
