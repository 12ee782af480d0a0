import type { BuildSummary, History } from "../../history/history-database.ts";
import { isRunning } from "./running-builds.ts";

/** Lists the builds of a history, the newest first. A killed build gets the status `interrupted`. `home`: bough's own directory. */
export function listBuilds(history: History, home: string): BuildSummary[] {
  return history
    .list()
    .map((build) =>
      build.status === "running" && !isRunning(home, build.owner)
        ? { ...build, status: "interrupted", error: killed }
        : build,
    );
}

/** The error of a build whose process has died. */
export const killed = "bough was killed, or the machine went down";
