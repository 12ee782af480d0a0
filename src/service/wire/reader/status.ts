/** The words for an operation's status: the protocol's own, and those of other servers. */
import { asRecord, asText, type JsonRecord } from "../../http/json.ts";
import { activeStatuses } from "../operation.ts";
import { fieldOf } from "./fields.ts";
import { statusKeys } from "./tables.ts";

type Stage = "running" | "SUCCESS" | "FAILED" | "CANCELLED";

/** Returns the text of a record's status; it may be an object that has one. */
export function statusTextIn(record: JsonRecord): string | undefined {
  for (const key of statusKeys) {
    const value = fieldOf(record, key);
    const inner = asRecord(value);
    const text =
      asText(value) ?? [...statusKeys, "name", "value"].map((name) => asText(inner?.[name])).find(Boolean);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** Returns the meaning of a status; `undefined` if this version does not know it. */
export function stageOf(status: string): Stage | undefined {
  return stages.get(wordOf(status));
}

export function isQueuedStatus(status: string): boolean {
  return queued.includes(wordOf(status));
}

/** True for words that say that a process is over, but not how: its exit code tells that. */
export function saysOnlyEnded(status: string): boolean {
  return ["STOPPED", "TERMINATED"].includes(wordOf(status));
}

/** True for words with which a service says that it has answered, and nothing about the operation in the answer. */
export function saysOnlyAnswered(status: string): boolean {
  return ["OK", "SUCCESS"].includes(wordOf(status));
}

export function saysTimedOut(status: string): boolean {
  return /^TIMED?_?OUT$/.test(wordOf(status));
}

/** Returns the protocol's word for a status, or the service's own if its meaning is not known. */
export function usualStatus(status: string): string {
  const word = wordOf(status);
  const stage = stages.get(word);
  if (stage !== "running") return stage ?? status;
  return (
    activeStatuses.find((active) => active === word) ?? (queued.includes(word) ? "PENDING" : "EXECUTING")
  );
}

/** `in progress`, `in-progress` and `inProgress` are one word, and so are `timedOut` and `TIMED_OUT`. */
function wordOf(status: string): string {
  return status
    .trim()
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .replaceAll(/[ -]/g, "_");
}

const queued = [
  ...["PENDING", "ASSIGNED", "QUEUED", "ENQUEUED", "CREATED", "SCHEDULED", "ACCEPTED", "SUBMITTED", "NEW"],
  "WAITING",
];

const stages: ReadonlyMap<string, Stage> = new Map(
  Object.entries({
    running: [
      ...queued,
      ...["EXECUTING", "STARTING", "STARTED", "RUNNING", "PROCESSING", "IN_PROGRESS", "INPROGRESS", "ACTIVE"],
      ...["WORKING", "BUSY", "PREPARING", "INITIALIZING", "PROVISIONING", "BOOTING", "PULLING", "IMPORTING"],
      ...["DOWNLOADING", "BUILDING", "COMMITTING", "SAVING", "ENDING", "STOPPING", "CANCELLING", "CANCELING"],
    ],
    SUCCESS: [
      ...["SUCCESS", "SUCCEEDED", "SUCCESSFUL", "COMPLETED", "COMPLETE", "DONE", "FINISHED", "EXITED", "OK"],
      ...["ENDED", "PASSED", "READY", "AVAILABLE", "IMPORTED"],
    ],
    FAILED: [
      ...["FAILED", "FAILURE", "FAIL", "ERROR", "ERRORED", "REJECTED", "TIMEOUT", "TIMED_OUT", "TIMEDOUT"],
      ...["EXPIRED", "CRASHED"],
    ],
    CANCELLED: ["CANCELLED", "CANCELED", "ABORTED", "STOPPED", "KILLED", "TERMINATED"],
  } satisfies Record<Stage, string[]>).flatMap(([stage, words]) =>
    words.map((word) => [word, stage as Stage] as const),
  ),
);
