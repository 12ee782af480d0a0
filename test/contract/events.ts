/** Events of an operation, held against the document: the frame itself, and its data by its type. */
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

/** Throws where it is not as the document has it. */
export function validateEvent(event: OperationEvent): OperationEvent {
  const schema = dataSchemas[event.type];
  const faults = [
    ...findFaults(event, { $ref: "#/OperationEvent" }, schemas),
    ...findFaults(event.data, { $ref: `#/${schema}` }, schemas),
  ];
  if (faults.length > 0) throw new Error(`event ${event.type}: ${faults.join("; ")}`);
  return event;
}
