/** Finds builds of the history that arguments name. */
import { basename } from "node:path";
import { BoughError, messageOf } from "../../errors.ts";
import type { BuildRecord } from "../../history/build-record.ts";
import {
  type BuildSummary,
  type History,
  historyPath,
  openExistingHistory,
} from "../../history/history-database.ts";
import { visible } from "../../visible.ts";
import type { ArgumentDefinition } from "../command-line/definitions.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/runtime.ts";
import { killed, listBuilds } from "../sessions/past-builds.ts";

export const buildArgument = {
  type: "positional",
  required: false,
  description:
    "ID of a build, its first characters, or ^1 for the last but one (default: ^0, the last build)",
} as const satisfies ArgumentDefinition;

/** Calls `work` with the history of this home and its builds, the newest first. */
export async function withHistory<Result>(
  runtime: Runtime,
  work: (builds: readonly BuildSummary[], history: History) => Result | Promise<Result>,
): Promise<Result> {
  using history = openPastBuilds(runtime);
  return work(listBuilds(history, stateDirectory(runtime)), history);
}

/** Opens the history of this home. */
export function openPastBuilds(runtime: Runtime): History {
  const home = stateDirectory(runtime);
  try {
    return openExistingHistory(home) ?? emptyHistory;
  } catch (error) {
    if (error instanceof BoughError) throw error;
    throw new BoughError(`cannot open the history of builds in ${home}: ${messageOf(error)}`, {
      hint: `Check the permissions of that directory, or remove ${basename(historyPath(home))} in it: only the history is lost.`,
      cause: error,
    });
  }
}

/** The history before the first build. */
const emptyHistory: History = {
  save() {},
  list: () => [],
  record: () => undefined,
  output: () => undefined,
  remove() {},
  count: () => 0,
  bytesOf: () => 0,
  freeBytes: () => 0,
  compact() {},
  [Symbol.dispose]() {},
};

/** Returns the builds that an argument names: the last one without an argument, several if their IDs begin with it. */
export function findBuilds(given: string | undefined, builds: readonly BuildSummary[]): BuildSummary[] {
  if (given === undefined) return builds.slice(0, 1);
  const [, back] = relativeReference.exec(given) ?? [];
  if (back !== undefined) return builds.slice(Number(back === "" ? 1 : back)).slice(0, 1);
  return given === "" ? [] : builds.filter(({ id }) => id.startsWith(given.toLowerCase()));
}

/** Matches `^` and `^2`. */
const relativeReference = /^\^(\d{0,6})$/;

/** Returns the only build that an argument of the command line names. */
export function requireBuild(given: string | undefined, builds: readonly BuildSummary[]): BuildSummary {
  if (builds.length === 0)
    throw new BoughError("the history has no builds yet", {
      hint: "`bough build` and `bough bake` add to it.",
    });
  const matches = findBuilds(given, builds);
  const [match, ...others] = matches;
  if (match !== undefined && others.length === 0) return match;
  if (match !== undefined)
    throw new BoughError(`${given} is ambiguous: ${matches.length} builds begin with it`, {
      hint: `Give more characters: ${matches
        .slice(0, 5)
        .map(({ id }) => id)
        .join(", ")}`,
    });
  if (given !== undefined && relativeReference.test(given))
    throw new BoughError(`there is no build ${given}: the history has ${builds.length}`, { hint });
  throw new BoughError(`there is no build ${visible(JSON.stringify(given))} in the history`, { hint });
}

const hint = "`bough history` lists them.";

/** Returns the whole record of a build. */
export function requireRecord({ id, status, error }: BuildSummary, history: History): BuildRecord {
  const record = history.record(id);
  if (record === undefined)
    throw new BoughError(`the build ${id} has just been removed from the history`, { hint });
  return record.status === status
    ? record
    : { ...record, status, error: { message: error ?? killed, hint: null } };
}

/** The maximum number of earlier builds that are read for sizes. */
const maxEarlierBuilds = 30;

/** Adds sizes of cached layers from earlier builds with the same identity, since a build only measures the layers that it makes. */
export function withSizes(
  record: BuildRecord,
  builds: readonly BuildSummary[],
  history: Pick<History, "record">,
): BuildRecord {
  const wanted = new Set(
    record.steps.flatMap(({ addedBytes, layer }) => (addedBytes === null && layer !== null ? [layer] : [])),
  );
  const sizes = new Map<string, number>();
  let earlier = earlierBuild({ ...record.origin, ...record }, builds);
  for (let count = 0; wanted.size > 0 && earlier !== undefined && count < maxEarlierBuilds; count++) {
    const { steps = [] } = history.record(earlier.id) ?? {};
    earlier = earlierBuild(earlier, builds);
    for (const { layer, addedBytes } of steps)
      if (layer !== null && addedBytes !== null && wanted.delete(layer)) sizes.set(layer, addedBytes);
  }
  const steps = record.steps.map((step) => ({
    ...step,
    addedBytes: step.addedBytes ?? sizes.get(step.layer ?? "") ?? null,
  }));
  return sizes.size === 0 ? record : { ...record, steps };
}

/** Returns the last earlier build with the same identity: Dockerfile, context and target. */
export function earlierBuild(
  of: Pick<BuildSummary, "startedAt" | "context" | "dockerfile" | "target" | "bakeTarget">,
  builds: readonly BuildSummary[],
): BuildSummary | undefined {
  return builds.find(
    (each) =>
      each.startedAt < of.startedAt &&
      each.context === of.context &&
      each.dockerfile === of.dockerfile &&
      each.target === of.target &&
      each.bakeTarget === of.bakeTarget &&
      each.status !== "running",
  );
}
