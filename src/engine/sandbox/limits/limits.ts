/** Limits on the resources of one instance. */

import { readFileSync } from "node:fs";
import {
  comparableLimit,
  minLimits,
  type ResourcesLimits,
  type Ulimit,
  type UlimitName,
  ulimitNames,
} from "../../../service/wire/instance.ts";
import type { LimitHit } from "../../../service/wire/operation.ts";
import {
  asFields,
  optionalFields,
  optionalNumber,
  type RequestFields,
  refuse,
  refuseUnknownFields,
} from "../../http/fields.ts";
import type { MachineSize } from "../../system/machine.ts";
import { hasCapability } from "../../system/user-namespace.ts";
import type { Controllers } from "./controllers.ts";

export interface InstanceLimits {
  /** Bytes, including swap and shared memory. */
  memory: number;
  /** Processes and threads. */
  processes: number;
  /** The number of processors; `undefined` for all. */
  cpus: number | undefined;
  /** The maximum size of the layer. */
  layerBytes: number | undefined;
  /** The size of `/dev/shm`; `undefined` for Docker's default. */
  shmBytes?: number | undefined;
  ulimits?: ResourcesLimits["ulimits"];
}

/** A control group accepts at most 4 Mi (Linux's PID_MAX_LIMIT), including the programs that start the command's processes. */
const maxProcesses = 4 * 1024 ** 2 - 1024;

const knownLimits = ["max_layer_bytes", "max_memory_bytes", "max_processes", "cpus", "shm_bytes", "ulimits"];

/** Reads `resources_limits` of a request. */
export function readLimits(body: RequestFields): ResourcesLimits {
  const fields = optionalFields(body, "resources_limits") ?? {};
  refuseUnknownFields(fields, knownLimits, "resources_limits");
  const limits: ResourcesLimits = {};
  const { max_memory_bytes, max_processes } = minLimits;
  const numbers = { max_layer_bytes: 1, max_memory_bytes, max_processes, shm_bytes: 1 } as const;
  for (const name of Object.keys(numbers) as (keyof typeof numbers)[]) {
    const limit = optionalNumber(fields, name, numbers[name]);
    if (limit !== undefined) limits[name] = limit;
  }
  const ulimits = readUlimits(fields);
  if (ulimits !== undefined) limits.ulimits = ulimits;
  const cpus = fields.cpus ?? undefined;
  if (cpus !== undefined) {
    if (typeof cpus !== "number" || !(cpus >= minLimits.cpus))
      refuse("cpus", `must be at least ${minLimits.cpus}`);
    limits.cpus = cpus;
  }
  return limits;
}

export function limitsFor(requested: ResourcesLimits, machine: MachineSize): InstanceLimits {
  const memory = requested.max_memory_bytes ?? defaultMemory(machine);
  return {
    memory,
    processes: Math.min(requested.max_processes ?? defaultProcesses(machine), maxProcesses),
    cpus: requested.cpus,
    layerBytes: requested.max_layer_bytes,
    ...(requested.ulimits && { ulimits: requested.ulimits }),
    // A control group counts shared memory as memory. Without one, nothing else limits it.
    shmBytes: requested.shm_bytes === undefined ? undefined : Math.min(requested.shm_bytes, memory),
  };
}

/** Returns the default for memory, which leaves a fifth of it, from 512 MiB to 4 GiB but at most half, to bough and to the rest of the machine. */
function defaultMemory({ memory }: MachineSize): number {
  const left = Math.min(Math.max(memory / 5, 512 * 1024 ** 2), 4 * 1024 ** 3);
  return Math.max(Math.floor(memory - left), Math.floor(memory / 2));
}

/** Returns the default for processes: 4096, or 64 per processor on a very large machine; at most a quarter of the machine's maximum. */
function defaultProcesses({ processors, maxProcesses }: MachineSize): number {
  return Math.max(
    Math.min(Math.max(4096, 64 * processors), Math.floor(maxProcesses / 4)),
    minLimits.max_processes,
  );
}

/** Returns the record of a limit that a command ran into. */
export function limitHit(limit: LimitHit["limit"], limits: InstanceLimits, killed: boolean): LimitHit {
  const values = {
    max_memory_bytes: limits.memory,
    max_processes: limits.processes,
    max_layer_bytes: limits.layerBytes ?? 0,
  };
  return { limit, value: values[limit], killed };
}

/** The limits in runc's configuration. */
export interface LimitSettings {
  resources: {
    memory?: { limit: number; swap?: number };
    pids?: { limit: number };
    cpu?: { shares?: number; period?: number; quota?: number };
    unified?: Record<string, string>;
  };
  /** An infinite limit means unlimited. */
  rlimits: readonly { type: string; hard: number; soft: number }[];
  oomScoreAdj: number;
}

/** OOM score adjustment (-1000 to 1000): if the machine runs out of memory, the kernel kills commands before bough. */
const oomScore = 500;
/** Half of the default (1024; 100 in version 2): other processes come first when processors are short. */
const cpuShares = 512;
const cpuWeight = 50;
/** The period in which a quota of processor time counts, as in Docker. */
const cpuPeriodMicroseconds = 100_000;
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
  // This limit counts per user of a user namespace. Polling enforces the true limit, but can be too slow for a fork bomb.
  if (pids === undefined && inUserNamespace)
    rlimit("RLIMIT_NPROC", Math.min(limits.processes + processesOfBough, own.processes));
  const quota =
    limits.cpus === undefined
      ? {}
      : { period: cpuPeriodMicroseconds, quota: Math.round(limits.cpus * cpuPeriodMicroseconds) };
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

/** The limits of setrlimit(2) that a request asks for. */
type Ulimits = NonNullable<ResourcesLimits["ulimits"]>;

/** Reads `ulimits` of a request's `resources_limits`. */
function readUlimits({ ulimits: given }: RequestFields): Ulimits | undefined {
  if (given == null) return undefined;
  const fields = asFields(given, "ulimits");
  refuseUnknownFields(fields, ulimitNames, "ulimits");
  const ulimits: Ulimits = {};
  for (const name of ulimitNames) {
    if (fields[name] === undefined) continue;
    const place = `ulimits.${name}`;
    const limit = asFields(fields[name], place);
    refuseUnknownFields(limit, ["soft", "hard"], place);
    const [soft, hard] = [optionalNumber(limit, "soft", -1), optionalNumber(limit, "hard", -1)];
    if (soft === undefined || hard === undefined) return refuse(place, "must have soft and hard");
    if (comparableLimit(soft) > comparableLimit(hard)) refuse(`${place}.soft`, "must not be above hard");
    ulimits[name] = { soft, hard };
  }
  return ulimits;
}

/** Returns the limits by their names in runc's configuration. An infinite one means unlimited. */
function rlimitsOf(ulimits: Ulimits = {}): Map<string, Ulimit> {
  return new Map(
    Object.entries(ulimits).map(([name, { soft, hard }]) => [
      `RLIMIT_${name.toUpperCase()}`,
      { soft: comparableLimit(soft), hard: comparableLimit(hard) },
    ]),
  );
}

/** Throws if this process may not set a limit for a command. `maxOf` returns the highest value of each. */
export function requireUlimits(ulimits: Ulimits, maxOf: (name: UlimitName) => number): void {
  for (const [name, { hard }] of Object.entries(ulimits) as [UlimitName, Ulimit][]) {
    const max = maxOf(name);
    if (comparableLimit(hard) <= max) continue;
    const asked = hard === -1 ? "unlimited" : String(hard);
    refuse(`ulimits.${name}.hard`, `must be at most ${max} (the engine may set no more), not ${asked}`);
  }
}

/**
 * Returns the highest values that this process may set. Only root of the machine, with CAP_SYS_RESOURCE, may exceed its own hard
 * limits.
 */
export function maxUlimits({ inUserNamespace }: { inUserNamespace: boolean }): (name: UlimitName) => number {
  const own = readFileSync("/proc/self/limits", "utf8");
  const mayRaise = !inUserNamespace && hasCapability("sysResource");
  return (name) => {
    const max = mayRaise ? Number.POSITIVE_INFINITY : hardLimit(own, titles[name]);
    // Not even a process with that capability may exceed `nr_open`.
    return name === "nofile" ? Math.min(max, Number(readFileSync("/proc/sys/fs/nr_open", "utf8"))) : max;
  };
}

/** Returns a hard limit in the contents of `/proc/<pid>/limits`; infinity if it is unlimited. */
function hardLimit(limits: string, title: string): number {
  const [, value] = new RegExp(`^${title}\\s+\\S+\\s+(\\d+)`, "m").exec(limits) ?? [];
  return value === undefined ? Number.POSITIVE_INFINITY : Number(value);
}

/** The names of the limits in `/proc/<pid>/limits`. */
const titles: Readonly<Record<UlimitName, string>> = {
  core: "Max core file size",
  cpu: "Max cpu time",
  data: "Max data size",
  fsize: "Max file size",
  locks: "Max file locks",
  memlock: "Max locked memory",
  msgqueue: "Max msgqueue size",
  nice: "Max nice priority",
  nofile: "Max open files",
  nproc: "Max processes",
  rss: "Max resident set",
  rtprio: "Max realtime priority",
  rttime: "Max realtime timeout",
  sigpending: "Max pending signals",
  stack: "Max stack size",
};
