/** Compares events of an operation with the document: the frame, and the data by the event's type. */
import type { OperationEvent } from "../../src/service/wire/operation.ts";
import { schemas } from "./client.ts";
import { findFaults } from "./schema.ts";

const dataSchemas: Readonly<Record<string, string>> = {
  init: "EventDataInit",
  spawn: "EventDataSpawn",
  stdin: "EventDataStream",
  stdout: "EventDataStream",
  stderr: "EventDataStream",
  exit: "EventDataExit",
  truncated: "EventDataTruncated",
  size_cap: "EventDataSizeCap",
  network: "EventDataNetwork",
  shutdown: "EventDataShutdown",
  completion: "EventDataCompletion",
};

/** Returns the event; throws if it does not match the document. */
export function validateEvent(event: OperationEvent): OperationEvent {
  const schema = dataSchemas[event.type];
  const faults = [
    ...findFaults(event, { $ref: "#/OperationEvent" }, schemas),
    ...findFaults(event.data, { $ref: `#/${schema}` }, schemas),
  ];
  if (faults.length > 0) throw new Error(`event ${event.type}: ${faults.join("; ")}`);
  return event;
}
