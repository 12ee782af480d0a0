import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import type { ResourceUsage } from "bun";
import { readOptional } from "../../../open-for-reading.ts";
import type { ProcessResources } from "../../../service/wire/operation.ts";

/** Resources used by an ended process and its waited-for children, with the names of an `exit` event. */
export interface EventResources {
  user_time_us: number;
  sys_time_us: number;
  max_rss_kb: number;
  shared_memory: number;
  unshared_memory: number;
  swaps: number;
  minor_faults: number;
  major_faults: number;
  voluntary_ctx_switches: number;
  involuntary_ctx_switches: number;
  block_input_ops: number;
  block_output_ops: number;
  ipc_msgs_sent: number;
  ipc_msgs_received: number;
  signals_received: number;
}

/**
 * Returns the resources of a helper that has ended, by getrusage(2). They include what runc used to start the command. Faults are 0,
 * since Bun does not report them.
 */
export function eventResources(usage: ResourceUsage | undefined): EventResources {
  return {
    user_time_us: Number(usage?.cpuTime.user ?? 0),
    sys_time_us: Number(usage?.cpuTime.system ?? 0),
    max_rss_kb: Math.round((usage?.maxRSS ?? 0) / 1024),
    shared_memory: usage?.shmSize ?? 0,
    unshared_memory: 0,
    swaps: usage?.swapCount ?? 0,
    minor_faults: 0,
    major_faults: 0,
    voluntary_ctx_switches: usage?.contextSwitches.voluntary ?? 0,
    involuntary_ctx_switches: usage?.contextSwitches.involuntary ?? 0,
    block_input_ops: usage?.ops.in ?? 0,
    block_output_ops: usage?.ops.out ?? 0,
    ipc_msgs_sent: usage?.messages.sent ?? 0,
    ipc_msgs_received: usage?.messages.received ?? 0,
    signals_received: usage?.signalCount ?? 0,
  };
}

/** Returns the resources with the names of an operation's result: times in seconds, `max_rss` in KiB. */
export function resultResources(resources: EventResources, elapsedSeconds: number): ProcessResources {
  return {
    elapsed_time: elapsedSeconds,
    user_cpu_time: resources.user_time_us / 1e6,
    system_cpu_time: resources.sys_time_us / 1e6,
    max_rss: resources.max_rss_kb,
    shared_memory: resources.shared_memory,
    unshared_memory: resources.unshared_memory,
    swaps: resources.swaps,
    page_faults: resources.minor_faults,
    page_faults_io: resources.major_faults,
    voluntary_switches: resources.voluntary_ctx_switches,
    involuntary_switches: resources.involuntary_ctx_switches,
    block_input: resources.block_input_ops,
    block_output: resources.block_output_ops,
    signals: resources.signals_received,
  };
}

/** The resources that a sandbox's processes use, where no control group counts them: read from /proc, outside of the sandbox. */
interface ProcessUsage {
  /** Processes and threads, including zombies. */
  processes: number;
  /** Bytes. Memory shared by several processes counts for each. */
  resident: number;
  pids: readonly number[];
}

/** Returns the usage of all processes started by runc, the child of each helper. */
export function usageBelow(helpers: Iterable<number>): ProcessUsage {
  const children = new Map<number, Status[]>();
  const pageSize = readPageSize();
  for (const name of readdirSync("/proc")) {
    const status = /^\d+$/.test(name) ? readStatus(Number(name), pageSize) : undefined;
    if (status === undefined) continue;
    const siblings = children.get(status.parent);
    if (siblings === undefined) children.set(status.parent, [status]);
    else siblings.push(status);
  }
  const pids: number[] = [];
  const childrenOf = (pid: number) => children.get(pid) ?? [];
  const waiting = [...helpers].flatMap(childrenOf).flatMap(({ pid }) => childrenOf(pid));
  let processes = 0;
  let resident = 0;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    pids.push(next.pid);
    processes += next.threads;
    resident += next.resident;
    for (const child of childrenOf(next.pid)) waiting.push(child);
  }
  return { processes, resident, pids };
}

/** Returns the number of processes and threads on the machine, by reading one short file. */
export function allProcesses(): number {
  const [, all] = /\/(\d+) /.exec(readOptional("/proc/loadavg")) ?? [];
  return Number(all ?? 0);
}

/** The number of processes to read if reading all would take too long. */
const sampleSize = 256;

/** Estimates `processes` of `usageBelow` from a sample of all processes: quick even while a fork bomb takes the processors. */
export function estimateBelow(helpers: ReadonlySet<number>): number {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const pageSize = readPageSize();
  const known = new Map<number, boolean>();
  const isBelow = (pid: number, parent: number | undefined): boolean => {
    if (helpers.has(pid)) return true;
    const found = known.get(pid);
    if (found !== undefined) return found;
    const next = parent ?? readStatus(pid, pageSize)?.parent ?? 0;
    const below = next > 1 && isBelow(next, undefined);
    known.set(pid, below);
    return below;
  };
  const step = Math.max(pids.length / sampleSize, 1);
  let processes = 0;
  for (let at = 0; at < pids.length; at += step) {
    const status = readStatus(Number(pids[Math.floor(at)]), pageSize);
    if (status !== undefined && isBelow(status.pid, status.parent)) processes += status.threads;
  }
  return processes * step;
}

/**
 * Returns the bytes that would be free without these processes: memory that several of them share counts once, and swapped memory
 * and open files in memory count too. Slow, since the kernel walks through their memory.
 */
export function exactMemory(pids: readonly number[]): number {
  let own = 0;
  let shared = 0;
  const open = new Map<string, number>();
  for (const pid of pids) {
    const rollup = readOptional(`/proc/${pid}/smaps_rollup`);
    own += kilobytes(rollup, "Pss_Anon") + kilobytes(rollup, "SwapPss");
    shared += kilobytes(rollup, "Pss_Shmem");
    for (const [inode, bytes] of memoryFiles(pid)) open.set(inode, bytes);
  }
  const files = [...open.values()].reduce((sum, bytes) => sum + bytes, 0);
  // A file that is mapped as well is in both sums.
  return own + Math.max(shared, files);
}

/** Returns memory of the machine that no process's resident size shows: shared memory, and swapped memory. In bytes. */
export function hiddenMemory(): { hidden: number; available: number } {
  const info = readOptional("/proc/meminfo");
  const swapped = kilobytes(info, "SwapTotal") - kilobytes(info, "SwapFree");
  return { hidden: kilobytes(info, "Shmem") + swapped, available: kilobytes(info, "MemAvailable") };
}

interface Status {
  pid: number;
  parent: number;
  threads: number;
  resident: number;
}

function readStatus(pid: number, pageSize: number): Status | undefined {
  const text = readOptional(`/proc/${pid}/stat`);
  // The second field is the program's name in parentheses and may hold anything; the 4th is the parent, the 20th the
  // number of threads, the 24th the resident pages.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  if (fields.length < 22) return undefined;
  const [parent, threads, pages] = [Number(fields[1]), Number(fields[17]), Number(fields[21])];
  // A zombie has no threads.
  return { pid, parent, threads: Math.max(threads, 1), resident: pages * pageSize };
}

/** Returns the page size in bytes, from the auxiliary vector (getauxval(3)): pairs of a key, here 6 (AT_PAGESZ), and a value. */
function readPageSize(): number {
  const vector = readFileSync("/proc/self/auxv");
  for (let at = 0; at + 16 <= vector.length; at += 16) {
    if (vector.readBigUInt64LE(at) === 6n) return Number(vector.readBigUInt64LE(at + 8));
  }
  return 4096;
}

function memoryFiles(pid: number): Map<string, number> {
  const files = new Map<string, number>();
  try {
    for (const name of readdirSync(`/proc/${pid}/fd`)) {
      const path = `/proc/${pid}/fd/${name}`;
      if (!/^\/(memfd:|dev\/zero|SYSV)/.test(readlinkSync(path))) continue;
      const { dev, ino, blocks } = statSync(path);
      files.set(`${dev}:${ino}`, blocks * 512);
    }
  } catch {
    // The process has ended meanwhile.
  }
  return files;
}

/** Returns the value of a line such as `Pss: 12 kB` in bytes; 0 if there is none. */
function kilobytes(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1] ?? 0) * 1024;
}
