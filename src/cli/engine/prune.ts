import type { Clock } from "../../clock.ts";
import type { PrunePlan } from "../../engine/prune/prune.ts";
import type { PruneSelection } from "../../engine/prune/selection.ts";
import { usageError } from "../../errors.ts";
import { formatBytes, formatCount } from "../../terminal/quantity.ts";
import { visible } from "../../visible.ts";
import { command, type Surroundings } from "../command-line/command.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { parseTime } from "../command-line/option-values.ts";
import { type OptionsOf, readOptions } from "../command-line/options.ts";
import { printResult } from "../command-line/result.ts";
import { requireEngineDirectory } from "../service/engine-host.ts";
import { parseKeepSize, recordFreedBytes, roomRequest } from "../service/make-room.ts";
import { pruneHistory } from "./history-usage.ts";
import { addScopeUses, withSessionImages } from "./session-images.ts";

const pruneDefinitions = {
  "older-than": {
    type: "string",
    valueHint: "AGE",
    description: "Only what was not used for this long, such as 7d; also for logs (their default: 7d)",
  },
  keep: {
    type: "string",
    valueHint: "SIZE",
    description:
      "Keep at most this much, such as 10GB: removes what is not needed, then the least recently used",
  },
  sessions: {
    type: "boolean",
    description: "Also remove sessions, with the layers of their builds; images with a tag stay",
  },
  archives: {
    type: "boolean",
    description:
      "Also remove the archives that layers were imported from: a push packs such layers again, with other digests",
  },
  auto: {
    type: "boolean",
    description:
      "Only make room, as bough does by itself: the least recently used, if the disk is nearly full (see `bough help disk`)",
  },
  all: {
    type: "boolean",
    alias: "a",
    description: "Also remove tagged images: everything that is not running",
  },
  yes: {
    type: "boolean",
    alias: "y",
    description: "Remove it; without -y bough only says what it would remove",
  },
} as const satisfies ArgumentDefinitions;

const pruneParsers = (clock: Pick<Clock, "now">) => ({
  "older-than": (text: string) => Date.parse(parseTime(text, "--older-than", clock)),
  keep: (text: string) => parseKeepSize(text, "--keep"),
});

/** What is removed. */
export type PruneRequest = OptionsOf<typeof pruneDefinitions, ReturnType<typeof pruneParsers>>;

export const prune = command({
  name: "prune",
  description: [
    "Remove what is not needed: layers that a later build of the same Dockerfile has replaced, images without a tag that no session",
    "uses, uploaded files, caches of RUN --mount, old logs of operations; with --older-than and --all also builds of `bough history`.",
  ].join("\n"),
  args: pruneDefinitions,
  needs: "engine",
  run: ({ values, ...surroundings }) =>
    pruneEngine(
      readOptions(values, pruneDefinitions, pruneParsers(surroundings.runtime.clock)),
      surroundings,
    ),
  examples: [
    ["engine prune", "say what would be removed"],
    ["engine prune -y", "remove it"],
    ["engine prune --keep 10GB -y", "also remove the least recently used, until 10 GB are left"],
    [
      "engine prune --sessions --older-than 30d -y",
      "also remove the sessions of builds that were not run for 30 days",
    ],
    ["engine prune --all -y", "remove everything"],
  ],
  agentNote: [
    "With -y this command removes images. What the latest builds used stays cached, unless --keep, --sessions or --all removes it:",
    "then it is built again. Images with a tag, and those of running commands, stay; --all removes tagged images as well.",
  ].join("\n"),
});

export async function pruneEngine(request: PruneRequest, surroundings: Surroundings): Promise<void> {
  const { runtime, log } = surroundings;
  const chosen = selectionOf(request, runtime.clock);
  const directory = await requireEngineDirectory(runtime);
  const engine = await import("../../engine/prune/prune.ts");
  const removes = request.yes === true;
  await withSessionImages(runtime, async ({ uses, ...known }) => {
    // --all removes every record, even if one is damaged.
    if (!chosen.all) await addScopeUses(uses, surroundings);
    const makeRoom = request.auto === true ? roomRequest(runtime, directory) : undefined;
    const selection = { ...withoutRunningBuilds(chosen, known.buildsSince), uses, makeRoom };
    const plan = removes
      ? await engine.prune(directory, selection)
      : { ...(await engine.planPrune(directory, selection)), leftoverBytes: 0 };
    // To make room, bough only removes what it can make again, which excludes the history.
    const history =
      makeRoom === undefined
        ? pruneHistory({ all: chosen.all, before: chosen.usedBefore }, removes, surroundings)
        : { count: 0, bytes: 0 };
    const sessions =
      chosen.sessions || chosen.all ? known.sessionsUntil(chosen.usedBefore ?? runtime.clock.now() + 1) : [];
    if (removes) {
      known.forgetImages(plan.images.map(({ uuid }) => uuid));
      known.deleteSessions(sessions);
      recordFreedBytes(runtime, bytesOf({ ...plan, history }));
    } else log.info("nothing was removed: -y removes it");
    if (known.buildsSince !== undefined) log.info("a build is running: what it may need stays");
    printResult(surroundings, {
      id: plan.images.map(({ uuid }) => uuid),
      json: { removed: removes, ...plan, history, sessions },
      table: () => renderPlan({ ...plan, history, sessions }, removes),
    });
    if (removes && chosen.all) log.info(`only records are left in ${directory}: it can be deleted as well`);
  });
}

function bytesOf({ layers, files, operations, caches, archives, history }: PlanWithHistory): number {
  return [layers, files, operations, caches, archives, history].reduce((sum, { bytes }) => sum + bytes, 0);
}

type PlanWithHistory = PrunePlan & { history: PrunePlan["layers"] };
type Pruned = PlanWithHistory & { leftoverBytes: number; sessions: readonly string[] };

function renderPlan({ leftoverBytes, sessions, ...plan }: Pruned, removes: boolean): string {
  const { images, layers, files, operations, caches, archives, history } = plan;
  const amounts: [count: number, noun: string][] = [
    [images.length, "image"],
    [layers.count, "layer"],
    [files.count, "uploaded file"],
    [operations.count, "finished operation"],
    [caches.count, "cache"],
    [archives.count, "archive"],
    [history.count, "past build"],
  ];
  const counts = amounts.flatMap(([count, noun]) => (count === 0 ? [] : formatCount(count, noun))).join(", ");
  const tagged = images.flatMap(({ tags }) => tags).sort();
  const list = (what: string, names: readonly string[]) =>
    names.length === 0
      ? []
      : [`${removes ? "removed" : "would remove"} ${what}: ${names.map(visible).join(", ")}`];
  return [
    `${removes ? "removed" : "would remove"} ${counts || "nothing"}: ${formatBytes(bytesOf(plan))}`,
    ...(leftoverBytes === 0
      ? []
      : [`removed leftovers of killed processes and lost records: ${formatBytes(leftoverBytes)}`]),
    ...list("tags", tagged),
    ...list("sessions", sessions),
    "",
  ].join("\n");
}

/** Returns the selection of `bough engine prune` without options. */
export function defaultSelection({ now }: Pick<Clock, "now">): Omit<PruneSelection, "uses"> {
  return { all: false, sessions: false, logsBefore: now() - 7 * 86_400_000 };
}

function selectionOf(request: PruneRequest, clock: Pick<Clock, "now">): Omit<PruneSelection, "uses"> {
  const chosen = defaultSelection(clock);
  const { all = false, sessions = false, archives = false, keep: keepBytes } = request;
  const usedBefore = request["older-than"];
  const isGiven = (name: keyof PruneRequest) => (request[name] ?? false) !== false;
  for (const other of ["all", "archives"] as const)
    if (isGiven(other) && keepBytes !== undefined)
      throw usageError(`--${other} and --keep cannot be used together`);
  const other = (["keep", "sessions", "archives", "all"] as const).find(isGiven);
  if (isGiven("auto") && other !== undefined)
    throw usageError(`--auto and --${other} cannot be used together`);
  return {
    ...{ all, sessions, archives, keepBytes, usedBefore },
    logsBefore: usedBefore ?? chosen.logsBefore,
  };
}

/** Excludes what running builds may need from the selection. `since`: the start of the first one. */
export function withoutRunningBuilds<Selection extends Pick<PruneSelection, "usedBefore">>(
  selection: Selection,
  since: number | undefined,
): Selection {
  return since === undefined
    ? selection
    : { ...selection, usedBefore: Math.min(since, selection.usedBefore ?? since) };
}
