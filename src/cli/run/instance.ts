import type { Service } from "../../service/client.ts";
import { requireEnd } from "../../service/operations/outcome.ts";
import type { EventListener, OperationOutcome } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { Log } from "../../terminal/log.ts";

interface RunOptions {
  service: Service;
  signal: AbortSignal;
  log: Log;
  onStart?: (operation: string) => void;
}

/**
 * Runs one instance to its end. An interruption, or an error of `attend`, cancels the instance on the service before it is
 * rethrown. `attend` is called when the instance has started.
 */
export async function runInstance(
  request: InstanceRequest,
  { service, signal, log, onStart }: RunOptions,
  listener?: EventListener,
  attend?: (operation: string, ended: Promise<unknown>) => Promise<void>,
): Promise<OperationOutcome> {
  const operation = await service.spawn(request);
  log.debug(`operation ${operation}`);
  onStart?.(operation);
  const ended = service.follow(operation, undefined, { onProgress: log.info, ...listener });
  const attended = attend?.(operation, ended);
  try {
    const [outcome] = await Promise.all([ended, attended]);
    return outcome;
  } catch (error) {
    // Waits until the terminal is restored, before anything is logged.
    await attended?.catch(() => {});
    if (!signal.aborted && attend === undefined) throw error;
    log.warn(`interrupted: cancelling operation ${operation}`);
    if (await service.cancel(operation)) log.warn(`operation ${operation} is cancelled`);
    else log.error(`the end of operation ${operation} is not confirmed: it may still run`);
    throw error;
  }
}

/** Returns the exit code of a command that ran to its end. Throws if something else ended it. */
export function requireExitCode(outcome: OperationOutcome, timeoutSeconds: number): number {
  requireEnd(outcome, timeoutSeconds);
  return processExitCode(outcome.exitCode ?? 0);
}

/** The system keeps only eight bits of an exit code: 256 would become success. */
export function processExitCode(code: number): number {
  return Number.isInteger(code) && code >= 0 && code <= 255 ? code : 1;
}
