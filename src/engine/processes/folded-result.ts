import {
  bytesOf,
  encodeBytes,
  type InstanceResult,
  mainProcessSpid,
  type OperationEvent,
} from "../../service/wire/operation.ts";
import { type EventResources, resultResources } from "../sandbox/limits/usage.ts";
import type { RecordedResult } from "./process-events.ts";

/**
 * Returns a process's result according to its events so far: exit code and signal are -1 while it runs. `undefined` if the events
 * contain no such process.
 */
export async function foldResult(
  events: AsyncIterable<OperationEvent | undefined>,
  spid: number,
): Promise<InstanceResult | undefined> {
  const output = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  const truncated = { stdout: false, stderr: false };
  const state = { exit_code: -1, signal: -1, timed_out: false, stopped: false, continued: false };
  let pid: number | undefined;
  let resources: InstanceResult["resources"];
  for await (const event of events) {
    if (event?.spid !== spid) continue;
    const { type, data } = event;
    if (typeof data.pid === "number") pid = data.pid;
    if (type === "stdout" || type === "stderr") output[type].push(bytesOf(data as unknown as Chunk));
    else if (type === "truncated") truncated[data.stream as "stdout" | "stderr"] = true;
    else if (type === "exit") {
      const exit = data as unknown as ExitData;
      Object.assign(state, { exit_code: exit.code, signal: exit.signal, timed_out: exit.timed_out });
      resources = resultResources(exit.resources, exit.duration_ms / 1000);
    }
  }
  if (pid === undefined) return undefined;
  const stream = (name: "stdout" | "stderr") => ({
    ...encodeBytes(Buffer.concat(output[name])),
    truncated: truncated[name],
  });
  return {
    state: { ...state, pid },
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    ...(resources === undefined ? {} : { resources }),
  };
}

/** Returns a record's result with all of its output. If the events are gone, so is output that was too long for the record. */
export async function withOutput(
  { output_in_events: isElsewhere, ...result }: RecordedResult,
  events: () => AsyncIterable<OperationEvent | undefined>,
): Promise<InstanceResult> {
  if (isElsewhere !== true) return result;
  const folded = await foldResult(events(), mainProcessSpid);
  const gone = { value: "", encoding: "ascii" as const, truncated: true };
  return { ...result, stdout: folded?.stdout ?? gone, stderr: folded?.stderr ?? gone };
}

interface Chunk {
  value: string;
  encoding: string;
}

interface ExitData {
  code: number;
  signal: number;
  timed_out: boolean;
  duration_ms: number;
  resources: EventResources;
}
