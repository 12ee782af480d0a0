import { isAscii } from "node:buffer";
import type { ResourcesLimits } from "./instance.ts";

export const operationStatuses = [
  "PENDING",
  "ASSIGNED",
  "EXECUTING",
  "SUCCESS",
  "FAILED",
  "CANCELLED",
] as const;
export type OperationStatus = (typeof operationStatuses)[number];
export const operationKinds = ["instance", "image_import"] as const;
export type OperationKind = (typeof operationKinds)[number];

export function isTerminal(status: OperationStatus): boolean {
  return status === "SUCCESS" || status === "FAILED" || status === "CANCELLED";
}

export const activeStatuses = operationStatuses.filter((status) => !isTerminal(status));

/** Bytes on the wire: `ascii` (or `utf-8`) is the text itself, `base64` arbitrary bytes. */
export interface WireBytes {
  value: string;
  encoding: string;
  truncated?: boolean;
}

export function bytesOf({ value, encoding }: WireBytes): Uint8Array {
  return Buffer.from(value, encoding.toLowerCase() === "base64" ? "base64" : "utf-8");
}

/** Returns the bytes of recorded output, none if there is no record of it. */
export function outputBytes(output: WireBytes | undefined): Uint8Array {
  return output === undefined ? new Uint8Array() : bytesOf(output);
}

/** Returns an instance's command with its words; `undefined` if the metadata is not that of an instance. */
export function commandOf({ command, args }: { command?: unknown; args?: unknown }): string | undefined {
  const words = Array.isArray(args) ? args.filter((word) => typeof word === "string") : [];
  return typeof command === "string" ? [command, ...words].join(" ") : undefined;
}

/** Names an operation to a person. */
export function operationName(uuid: string): string {
  return `operation ${uuid}`;
}

/** The longest wait for the end of an operation that was cancelled. */
export const cancelMilliseconds = 15_000;

/** Encodes bytes as `ascii` if all of them are; else as `base64`, which every client decodes. */
export function encodeBytes(bytes: Uint8Array): { value: string; encoding: "ascii" | "base64" } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isAscii(buffer)
    ? { value: buffer.toString("latin1"), encoding: "ascii" }
    : { value: buffer.toString("base64"), encoding: "base64" };
}

/** A limit that a command ran into. Part of the extension `resource-limits`. */
export interface LimitHit {
  limit: Extract<keyof ResourcesLimits, `max_${string}`>;
  value: number;
  /** True if the whole command was killed for it. */
  killed: boolean;
}

interface ProcessState {
  exit_code: number;
  pid?: number;
  signal?: number;
  timed_out?: boolean;
  stopped?: boolean;
  continued?: boolean;
}

/** Fields of getrusage(2): times in seconds, `max_rss` in KiB. */
export interface ProcessResources {
  elapsed_time?: number;
  user_cpu_time?: number;
  system_cpu_time?: number;
  max_rss?: number;
  shared_memory?: number;
  unshared_memory?: number;
  swaps?: number;
  page_faults?: number;
  page_faults_io?: number;
  voluntary_switches?: number;
  involuntary_switches?: number;
  block_input?: number;
  block_output?: number;
  signals?: number;
}

export interface InstanceResult {
  state?: ProcessState;
  stdout?: WireBytes;
  stderr?: WireBytes;
  resources?: ProcessResources;
  limits_hit?: LimitHit[];
  /** Why it could not be run, where a client does something about it. */
  failure?: "disk_full";
}

/** The response of `GET /v1/operations/{uuid}`. */
export interface OperationRecord {
  uuid: string;
  kind: OperationKind;
  status: OperationStatus;
  error: string | null;
  created_at?: string;
  duration?: number | null;
  /** Bytes. */
  image_size?: number | null;
  /** Seconds of processors' time. */
  consumed_cpu?: number | null;
  /** Bytes at the peak. */
  consumed_memory?: number | null;
  /** The image that the operation started from. */
  image_uuid?: string | null;
  metadata?: { command?: string; image?: string; shell?: boolean; result?: InstanceResult | null } & Record<
    string,
    unknown
  >;
  result_image_uuid?: string | null;
  result?: { image?: string | null; tag?: string | null } | null;
}

/** The `spid` of events of the sandbox itself, and of its main process. Further processes have the next numbers. */
export const sandboxSpid = 0;
export const mainProcessSpid = 1;

/** One frame of `GET /v1/operations/{uuid}/events`. */
export interface OperationEvent {
  id: number;
  ts: string;
  spid: number;
  type: string;
  data: Record<string, unknown>;
}

export interface ErrorBody {
  error: string;
  status: number;
  /** Set where the status does not tell what a client should do. */
  reason?: typeof diskFailing;
}

/** The disk can't be written, though it may have space. */
export const diskFailing = "disk_failing";
