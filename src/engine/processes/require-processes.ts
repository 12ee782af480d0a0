import { RequestError } from "../http/responses.ts";
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

/** Throws a RequestError (409) as `requireProcesses` does, and if the command has no terminal. */
export function requireTerminal(
  state: { instances: ReadonlyMap<string, InstanceProcesses> },
  operation: Operation,
): { processes: InstanceProcesses; terminal: NonNullable<InstanceProcesses["terminal"]> } {
  const processes = requireProcesses(state, operation);
  const { terminal } = processes;
  if (terminal === undefined) throw new RequestError(409, `operation ${operation.uuid} has no terminal`);
  return { processes, terminal };
}

/** Opens a terminal's output, for one client. The operation is cancelled when that client leaves. */
export async function attachTerminal(
  state: {
    instances: ReadonlyMap<string, InstanceProcesses>;
    running: ReadonlyMap<string, { cancel(): void }>;
  },
  operation: Operation,
): Promise<ReadableStream<Uint8Array>> {
  const { processes, terminal } = requireTerminal(state, operation);
  await processes.requireStarted();
  return terminal.output.attach(() => state.running.get(operation.uuid)?.cancel());
}
