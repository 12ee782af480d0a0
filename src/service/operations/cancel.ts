/** Stops an operation. */
import { NotFoundError } from "../http/errors.ts";
import { lookAtOperation, type PollingOptions, pollUntilEnded } from "./polling.ts";

export const cancelMilliseconds = 15_000;

/** Returns true if the operation is, or was, ended. */
export async function cancel(options: PollingOptions, operation: string): Promise<boolean> {
  const { transport, signal } = options;
  // 409: it has ended already. 404, 405, 501: there is no such operation, or no call to stop one.
  const handles = [404, 405, 409, 501];
  const { status } = await transport.call({
    method: "DELETE",
    ...transport.operations.addressOf(operation),
    repeatable: true,
    handles,
    signal,
  });
  if (status === 409) return true;
  if (handles.includes(status)) {
    const look = await lookAtOperation(options, operation).catch((error: unknown) => {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    });
    return look === undefined || look.view.ended !== undefined;
  }
  await pollUntilEnded(options, operation, cancelMilliseconds);
  return true;
}
