/** Turns a scripted outcome into the events and the record of an operation. */
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import type { LimitHit, OperationRecord, WireBytes } from "../../src/service/wire/operation.ts";
import { isPlacement, putFiles, runPlacement } from "./placement.ts";
import type { FakeOperation, FakeState, RunChunk, RunOutcome } from "./state.ts";

/** An outcome without delays has ended when this returns. */
export function perform(
  state: FakeState,
  operation: FakeOperation,
  request: InstanceBody,
  image: string,
  outcome: RunOutcome,
): void {
  const chunks = outcome.chunks ?? [
    ...(outcome.stdout === undefined ? [] : [{ stream: "stdout" as const, data: outcome.stdout }]),
    ...(outcome.stderr === undefined ? [] : [{ stream: "stderr" as const, data: outcome.stderr }]),
  ];
  startEvents(operation);
  emitSpawn(operation, 1, request);
  const finish = () => complete(state, operation, request, image, outcome, chunks);
  if (!takesTime(outcome, chunks)) {
    for (const chunk of chunks) emitOutput(operation, chunk);
    finish();
    return;
  }
  playSlowly(operation, outcome, chunks).then(finish);
}

export function startEvents(operation: FakeOperation): void {
  emit(operation, 0, "init", { started_at: now, runtime_path: "runc", verbose: false, init_pid: 1 });
}

export function emitSpawn(operation: FakeOperation, spid: number, request: Partial<InstanceBody>): void {
  emit(operation, spid, "spawn", {
    pid: 41 + spid,
    command: request.command,
    args: request.args ?? [],
    shell: request.shell ?? false,
    cwd: request.cwd ?? "/root",
    uid: request.uid ?? 0,
    gid: request.gid ?? 0,
    timeout: request.timeout ?? 0,
    truncate_at: request.truncate_output_at ?? 65536,
    env: request.env ?? {},
  });
}

export function emitExit(
  operation: FakeOperation,
  spid: number,
  {
    code,
    signal,
    timedOut = false,
    limitsHit,
  }: { code: number; signal: number; timedOut?: boolean; limitsHit?: LimitHit[] | undefined },
): void {
  emit(operation, spid, "exit", {
    pid: 41 + spid,
    code,
    signal,
    timed_out: timedOut,
    duration_ms: 10,
    resources,
    ...(limitsHit && { limits_hit: limitsHit }),
  });
}

/** Ends an operation, once: a cancelled one stays cancelled. */
export function endOperation(
  operation: FakeOperation,
  end: Partial<OperationRecord> & Pick<OperationRecord, "status">,
): void {
  const { record } = operation;
  if (record.status === "CANCELLED") return;
  Object.assign(record, { duration: 0.01 }, end);
  for (const [spid, process] of operation.processes) {
    if (!process.hasEnded) emitExit(operation, spid, { code: -1, signal: 9 });
    process.hasEnded = true;
  }
  emit(operation, 0, "shutdown", { stopped_at: now, reason: record.status.toLowerCase() });
  emit(operation, 0, "completion", {
    status: record.status,
    error: record.error,
    duration_ms: 10,
    result_image_uuid: record.result_image_uuid ?? null,
  });
}

async function playSlowly(
  operation: FakeOperation,
  outcome: RunOutcome,
  chunks: readonly RunChunk[],
): Promise<void> {
  for (const chunk of chunks) {
    if (chunk.delayMs !== undefined) await Bun.sleep(chunk.delayMs);
    await chunk.after;
    emitOutput(operation, chunk);
  }
  await outcome.until;
  if (outcome.delayMs !== undefined) await Bun.sleep(outcome.delayMs);
}

function takesTime(outcome: RunOutcome, chunks: readonly RunChunk[]): boolean {
  const waits = chunks.some(({ delayMs, after }) => delayMs !== undefined || after !== undefined);
  return waits || outcome.delayMs !== undefined || outcome.until !== undefined;
}

function complete(
  state: FakeState,
  operation: FakeOperation,
  request: InstanceBody,
  image: string,
  outcome: RunOutcome,
  chunks: readonly RunChunk[],
): void {
  if (outcome.error !== undefined) {
    endOperation(operation, { status: "FAILED", error: outcome.error });
    return;
  }
  const exitCode = outcome.exitCode ?? 0;
  const timedOut = outcome.timedOut ?? false;
  const limit = outcome.truncateAt ?? request.truncate_output_at ?? 65536;
  emitExit(operation, 1, { code: exitCode, signal: -1, timedOut, limitsHit: outcome.limitsHit });
  const result = request.disposable
    ? null
    : outcome.image === "unchanged"
      ? image
      : addResult(state, image, request);
  const { metadata } = operation.record;
  endOperation(operation, {
    status: "SUCCESS",
    metadata: {
      ...metadata,
      result: {
        state: { exit_code: exitCode, pid: 42, signal: -1, timed_out: timedOut },
        stdout: kept(chunks, "stdout", limit),
        stderr: kept(chunks, "stderr", limit),
        resources: { elapsed_time: 0.01, max_rss: 1024 },
        ...(outcome.limitsHit === undefined ? {} : { limits_hit: outcome.limitsHit }),
      },
    },
    result_image_uuid: result,
    result: { image: result, tag: null },
  });
}

/** Adds an image with the instance's files and the results of bough's own script. Other commands change no files. */
function addResult(state: FakeState, image: string, request: InstanceBody): string {
  const result = state.addImage();
  const tree = new Map(state.trees.get(image));
  putFiles(tree, request, state);
  const script = request.args?.[1] ?? "";
  if (isPlacement(script)) runPlacement(tree, script);
  if (tree.size > 0) state.trees.set(result, tree);
  return result;
}

function kept(chunks: readonly RunChunk[], stream: RunChunk["stream"], limit: number): WireBytes {
  const whole = Buffer.concat(
    chunks.filter((chunk) => chunk.stream === stream).map(({ data }) => Buffer.from(data)),
  );
  return { ...encode(whole.subarray(0, limit)), truncated: whole.byteLength > limit };
}

export function emitOutput(operation: FakeOperation, { stream, data }: RunChunk, spid = 1): void {
  emit(operation, spid, stream, { ...encode(Buffer.from(data)) });
}

/** Encodes as the service does: ASCII as text, anything else in base64. */
export function encode(bytes: Buffer): WireBytes {
  const isAscii = bytes.every((byte) => byte < 0x80);
  return isAscii
    ? { value: bytes.toString("latin1"), encoding: "ascii" }
    : { value: bytes.toString("base64"), encoding: "base64" };
}

const now = "2026-01-01T00:00:00Z";

/** All fields that the API's document requires. */
const resources = {
  user_time_us: 1000,
  sys_time_us: 1000,
  max_rss_kb: 1024,
  shared_memory: 0,
  unshared_memory: 0,
  swaps: 0,
  minor_faults: 0,
  major_faults: 0,
  voluntary_ctx_switches: 0,
  involuntary_ctx_switches: 0,
  block_input_ops: 0,
  block_output_ops: 0,
  ipc_msgs_sent: 0,
  ipc_msgs_received: 0,
  signals_received: 0,
};

function emit(operation: FakeOperation, spid: number, type: string, data: Record<string, unknown>): void {
  const id = operation.events.length + 1;
  operation.events.push({ id, ts: now, spid, type, data });
  operation.notify();
}
