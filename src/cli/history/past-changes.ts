import { BoughError } from "../../errors.ts";
import { type ChangedVariable, changedVariables } from "../../history/changed-variables.ts";
import type { BuildSummary, History } from "../../history/history-database.ts";
import { once } from "../../once.ts";
import type { Runtime } from "../process/runtime.ts";
import { openPastBuilds } from "./find-build.ts";

/** The builds that are looked at: what changed long ago may be mended. */
const recentBuilds = 20;

type BuildPlace = Pick<BuildSummary, "context" | "dockerfile" | "target" | "bakeTarget">;

/** What past builds had to run again because of a variable. The history is opened and listed once, when it is first needed. */
export interface PastChanges extends Disposable {
  /** Targets of one Dockerfile differ in their arguments. */
  of(place: BuildPlace): ChangedVariable[];
}

export function createPastChanges(runtime: Runtime): PastChanges {
  const opened = new DisposableStack();
  const read = once(() => {
    const history = opened.use(openPastBuilds(runtime));
    const built = history.list().filter(({ status, layers }) => status === "succeeded" && layers > 0);
    return { history, builds: Map.groupBy(built, keyOf) };
  });
  return {
    of(place) {
      try {
        const { history, builds } = read();
        return changedVariables(recordsOf(builds.get(keyOf(place)) ?? [], history));
      } catch (error) {
        // A history that can't be read is no mistake in the Dockerfile.
        if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
        return [];
      }
    },
    [Symbol.dispose]: () => opened.dispose(),
  };
}

function recordsOf(builds: readonly BuildSummary[], history: History) {
  return builds.slice(0, recentBuilds).flatMap(({ id }) => history.record(id) ?? []);
}

function keyOf({ context, dockerfile, target, bakeTarget }: BuildPlace): string {
  return JSON.stringify([context, dockerfile, target, bakeTarget]);
}
