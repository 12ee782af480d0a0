import { resolve } from "node:path";
import { abandonable } from "../../../service/http/abort.ts";
import type { Call } from "../call.ts";

/** The last build of each directory. */
const builds = new Map<string, Promise<unknown>>();

/**
 * One build of a context after the other: two in one process would take each other's operations for what an earlier one has
 * left.
 */
export async function inTurn<Result>(
  context: string,
  call: Call,
  action: () => Promise<Result>,
): Promise<Result> {
  const directory = resolve(call.invocation.runtime.workingDirectory, context);
  const before = builds.get(directory);
  const own = (async () => {
    if (before !== undefined) {
      call.report("waiting for another build of the same context");
      await abandonable(call.signal, before);
    }
    return action();
  })();
  const over = own.then(
    () => before,
    () => before,
  );
  builds.set(directory, over);
  try {
    return await own;
  } finally {
    if (builds.get(directory) === over) builds.delete(directory);
  }
}
