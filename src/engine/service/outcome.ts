/** Follows an operation's events to its end, and reads its outcome from its record. */
import { messageOf } from "../../errors.ts";
import type { EventListener, OperationOutcome, OutputChunk } from "../../service/service.ts";
import { bytesOf, mainProcessSpid, type WireBytes } from "../../service/wire/operation.ts";
import { followEvents } from "../operation-events.ts";
import { withOutput } from "../processes/folded-result.ts";
import type { EngineEvent } from "../records/event-files.ts";
import type { Operation } from "../records/operations.ts";
import { requireOperation } from "../recovery.ts";
import type { EngineState } from "../state.ts";

type StreamName = OutputChunk["stream"];

/** The part of an output stream that was received. */
interface Received {
  decoder: TextDecoder;
  bytes: number;
  /** Its text, unless a listener takes all output. */
  parts: string[] | undefined;
  truncated: boolean;
}

interface Following {
  signal: AbortSignal;
  listener: EventListener;
  onOutput: (chunk: OutputChunk) => void;
  /** Called with a description of an error that only matters for debugging. */
  onFault: (text: string) => void;
}

/** Returns an operation's outcome, once it has ended. */
export async function followOperation(
  state: EngineState,
  uuid: string,
  { signal, listener, onOutput, onFault }: Following,
): Promise<{ operation: Operation; outcome: OperationOutcome }> {
  const streams = { stdout: newStream(listener), stderr: newStream(listener) };
  await requireOperation(state, uuid);
  let isWhole = false;
  try {
    for await (const event of followEvents(state, uuid, signal)) {
      if (event.type === "completion") isWhole = true;
      takeEvent(event, streams, listener, onOutput);
    }
  } catch (error) {
    onFault(`the events of operation ${uuid} can't be read: ${messageOf(error)}`);
  }
  signal.throwIfAborted();
  const operation = await untilEnded(state, uuid, signal);
  if (!isWhole) await takeRecordedOutput(state, operation, streams, listener);
  for (const stream of ["stdout", "stderr"] as const) emit(stream, streams[stream], undefined, onOutput);
  return { operation, outcome: outcomeOf(operation, streams) };
}

/** Waits for the end of an operation, whichever process runs it. */
export async function untilEnded(state: EngineState, uuid: string, signal: AbortSignal): Promise<Operation> {
  for (;;) {
    const operation = await requireOperation(state, uuid);
    if (operation.finishedAt !== null) return operation;
    await (state.running.get(uuid)?.ended ?? state.clock.sleep(pollMilliseconds, signal));
  }
}

const pollMilliseconds = 100;

/** Passes on the data of an event. Processes started beside the command have their own events. */
export function takeEvent(
  { type, spid, data, bytes }: EngineEvent,
  streams: Readonly<Record<StreamName, Received>> | undefined,
  listener: EventListener,
  onOutput: (chunk: OutputChunk) => void = () => undefined,
): void {
  if (spid > mainProcessSpid) return;
  if (type === "stdout" || type === "stderr") {
    const output = bytes ?? bytesOf(data as unknown as WireBytes);
    listener.onBytes?.(type, output);
    if (streams !== undefined) emit(type, streams[type], output, onOutput);
  } else if (type === "truncated" && (data.stream === "stdout" || data.stream === "stderr")) {
    if (streams !== undefined) streams[data.stream].truncated = true;
  } else if (type === "init") listener.onStart?.();
  else if (type === "progress")
    (data.is_warning === true ? listener.onWarning : listener.onProgress)?.(String(data.message ?? ""));
}

function newStream({ onRest }: EventListener): Received {
  const parts = onRest === undefined ? [] : undefined;
  return { decoder: new TextDecoder("utf-8", { ignoreBOM: true }), bytes: 0, parts, truncated: false };
}

/** Decodes and passes on a chunk; without bytes, the end of the stream. A character may be split between chunks. */
function emit(
  stream: StreamName,
  received: Received,
  bytes: Uint8Array | undefined,
  onOutput: (chunk: OutputChunk) => void,
): void {
  received.bytes += bytes?.length ?? 0;
  const text =
    bytes === undefined ? received.decoder.decode() : received.decoder.decode(bytes, { stream: true });
  if (text === "") return;
  received.parts?.push(text);
  onOutput({ stream, text });
}

/** Takes output that is missing in the events from the record: after a full disk, only the record has it. */
async function takeRecordedOutput(
  state: EngineState,
  { uuid, result }: Operation,
  streams: Readonly<Record<StreamName, Received>>,
  { onRest }: EventListener,
): Promise<void> {
  const events = () => state.events.readAll(uuid, state.closing);
  const recorded = result && (await withOutput(result, events).catch(() => undefined));
  for (const stream of ["stdout", "stderr"] as const) {
    const output = recorded?.[stream];
    const received = streams[stream];
    if (output === undefined) {
      received.truncated ||= received.bytes > 0 || recorded === undefined;
      continue;
    }
    received.truncated ||= output.truncated === true;
    emit(stream, received, bytesOf(output).subarray(received.bytes), (chunk) => onRest?.(chunk));
  }
}

function outcomeOf(
  { uuid, status, error, result, resultImage, createdAt, finishedAt }: Operation,
  streams: Readonly<Record<StreamName, Received>>,
): OperationOutcome {
  const captured = ({ parts = [], truncated }: Received) => ({ text: parts.join(""), truncated });
  return {
    operation: uuid,
    status: status === "SUCCESS" || status === "CANCELLED" ? status : "FAILED",
    error: error ?? undefined,
    exitCode: result?.state?.exit_code,
    timedOut: result?.state?.timed_out === true,
    limitsHit: result?.limits_hit ?? [],
    isDiskFull: result?.failure === "disk_full",
    stdout: captured(streams.stdout),
    stderr: captured(streams.stderr),
    image: resultImage ?? undefined,
    served: { since: createdAt, seconds: ((finishedAt ?? createdAt) - createdAt) / 1000 },
  };
}
