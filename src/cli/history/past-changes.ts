import { BoughError } from "../../errors.ts";
import { type ChangedVariable, changedVariables } from "../../history/changed-variables.ts";
import type { BuildSummary, History } from "../../history/history-database.ts";
import { once } from "../../once.ts";
import type { Runtime } from "../process/runtime.ts";
import { openPastBuilds } from "./find-build.ts";

/** The maximum number of builds that are read: the cause of older changes may be fixed. */
const maxRecentBuilds = 20;

type BuildIdentity = Pick<BuildSummary, "context" | "dockerfile" | "target" | "bakeTarget">;

/** Finds variables that made past builds run steps again. The history is opened and listed once, when it is first needed. */
export interface PastChanges extends Disposable {
  /** Returns the variables of a target: targets of one Dockerfile differ in their arguments. */
  of(identity: BuildIdentity): ChangedVariable[];
}

export function createPastChanges(runtime: Runtime): PastChanges {
  const opened = new DisposableStack();
  const read = once(() => {
    const history = opened.use(openPastBuilds(runtime));
    const built = history.list().filter(({ status, layers }) => status === "succeeded" && layers > 0);
    return { history, builds: Map.groupBy(built, keyOf) };
  });
  return {
    of(identity) {
      try {
        const { history, builds } = read();
        return changedVariables(recordsOf(builds.get(keyOf(identity)) ?? [], history));
      } catch (error) {
        // An unreadable history is not an error of the Dockerfile.
        if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
        return [];
      }
    },
    [Symbol.dispose]: () => opened.dispose(),
  };
}

function recordsOf(builds: readonly BuildSummary[], history: History) {
  return builds.slice(0, maxRecentBuilds).flatMap(({ id }) => history.record(id) ?? []);
}

function keyOf({ context, dockerfile, target, bakeTarget }: BuildIdentity): string {
  return JSON.stringify([context, dockerfile, target, bakeTarget]);
}
