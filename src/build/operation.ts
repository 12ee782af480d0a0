import { BoughError } from "../errors.ts";
import type { OperationOutcome } from "../service/service.ts";
import type { InstanceRequest } from "../service/types.ts";
import type { BuildJob } from "./job.ts";

/** Runs one instance to its end; an interruption cancels it on the service before it is passed on. */
export async function runOperation(
  request: InstanceRequest,
  title: string,
  build: BuildJob,
  { showsOutput = true } = {},
): Promise<OperationOutcome> {
  const { service, emit } = build;
  const operation = await service.spawn(request);
  emit({ type: "spawned", operation, title });
  try {
    if (!showsOutput) return await service.follow(operation);
    const outcome = await service.follow(operation, (chunk) => emit({ type: "output", chunk }));
    emit({ type: "ran", operation, stdout: outcome.stdout, stderr: outcome.stderr });
    return outcome;
  } catch (error) {
    if (build.signal.aborted) {
      emit({ type: "cancelling", operation });
      emit({ type: "cancelled", operation, confirmed: await service.cancel(operation) });
    }
    throw error;
  }
}

/** The resulting image of a command that was run to its end and exited 0; anything else is an error that says which. */
export function requireSuccess(outcome: OperationOutcome, timeoutSeconds: number): string {
  const { operation, status, error, exitCode, image } = outcome;
  if (outcome.timedOut) {
    throw new BoughError(`the command was stopped after ${timeoutSeconds} seconds (operation ${operation})`, {
      hint: "Allow it more time with --timeout SECONDS.",
    });
  }
  if (status === "CANCELLED") throw new BoughError(`operation ${operation} was cancelled on the service`);
  if (status === "FAILED") {
    throw new BoughError(
      `the service could not run the command: ${error ?? "it gives no reason"} (operation ${operation})`,
    );
  }
  if (exitCode !== undefined && exitCode !== 0) {
    const hint = exitCodeHints[exitCode];
    throw new BoughError(
      `the command failed with exit code ${exitCode} (operation ${operation})`,
      hint === undefined ? {} : { hint },
    );
  }
  if (image === undefined)
    throw new BoughError(`operation ${operation} succeeded, but the service names no resulting image`);
  return image;
}

const exitCodeHints: Partial<Record<number, string>> = {
  126: "Exit code 126: a file was found that can't be executed. Is its mode right (COPY --chmod=755)?",
  127: "Exit code 127: a program was not found in the image.",
  137: "Exit code 137: the command was killed, often for want of memory.",
};
