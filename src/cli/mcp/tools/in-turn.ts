import { resolve } from "node:path";
import { abandonable } from "../../../service/http/deadline.ts";
import { readContextSource } from "../../contexts/context-source.ts";
import type { Call } from "../call.ts";

/** The last build of each directory or repository. */
const builds = new Map<string, Promise<unknown>>();

/**
 * Runs builds of the same context one after another: of two in one process, each would take the other's operations for those that
 * an earlier build left behind.
 */
export async function inTurn<Result>(
  context: string,
  call: Call,
  action: () => Promise<Result>,
): Promise<Result> {
  const directory = placeOf(context, call.invocation.runtime.workingDirectory);
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

/** All commits of a repository share one session, so they share a place, too. */
function placeOf(context: string, workingDirectory: string): string {
  const source = readContextSource(context, workingDirectory);
  if (source.kind !== "repository") return resolve(workingDirectory, context);
  const { remote, subdirectory } = source.address;
  return `${remote}#:${subdirectory}`;
}
