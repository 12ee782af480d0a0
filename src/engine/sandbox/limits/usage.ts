import type { ResourceUsage } from "bun";
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
 * From getrusage(2) of a helper that has ended; includes what runc used to start the command. Faults are 0, since Bun does not
 * report them.
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

/** The same with the names of an operation's result: times in seconds, `max_rss` in KiB. */
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
