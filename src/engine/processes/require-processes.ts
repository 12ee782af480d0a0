import { RequestError } from "../http/answers.ts";
import type { Operation } from "../records/operations.ts";
import type { InstanceProcesses } from "./instance-processes.ts";

/** Throws a RequestError (409) if the operation has ended, or another process runs it. */
export function requireProcesses(
  { instances }: { instances: ReadonlyMap<string, InstanceProcesses> },
  operation: Operation,
): InstanceProcesses {
  const { uuid, finishedAt, status } = operation;
  if (finishedAt !== null) throw new RequestError(409, `operation ${uuid} has already ended (${status})`);
  const processes = instances.get(uuid);
  if (processes !== undefined) return processes;
  throw new RequestError(
    409,
    `operation ${uuid} was started by another bough process, and only that process can do this`,
  );
}
