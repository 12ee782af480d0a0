import type { Clock } from "../../clock.ts";
import type { PruneSelection } from "../../engine/prune/selection.ts";
import { BoughError } from "../../errors.ts";
import type { Values } from "../command-line/arguments.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { parseTime } from "../command-line/time.ts";
import { parseKept } from "../service/make-room.ts";

export const pruneArguments: ArgumentDefinitions = {
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
};

/** Returns the selection of `bough engine prune` without options. */
export function defaultSelection({ now }: Pick<Clock, "now">): Omit<PruneSelection, "uses"> {
  return { all: false, sessions: false, logsBefore: now() - 7 * 86_400_000 };
}

export function readSelection(values: Values, clock: Pick<Clock, "now">): Omit<PruneSelection, "uses"> {
  const chosen = defaultSelection(clock);
  const age = parseTime(values.text("older-than"), "--older-than", clock);
  const usedBefore = age === undefined ? undefined : Date.parse(age);
  const all = values.flag("all");
  const kept = values.text("keep");
  const keepBytes = kept === undefined ? undefined : parseKept(kept, "--keep");
  if (all && keepBytes !== undefined)
    throw new BoughError("--all and --keep cannot be used together", { kind: "usage" });
  const others = ["keep", "sessions", "all"].filter((name) => values.names.includes(name));
  if (values.flag("auto") && others.length > 0)
    throw new BoughError(`--auto and --${others[0]} cannot be used together`, { kind: "usage" });
  return {
    ...{ all, sessions: values.flag("sessions"), keepBytes, usedBefore },
    logsBefore: usedBefore ?? chosen.logsBefore,
  };
}

/** Returns the selection without what a running build may need. `since`: when the first one began. */
export function beforeBuilds<Selection extends Pick<PruneSelection, "usedBefore">>(
  selection: Selection,
  since: number | undefined,
): Selection {
  return since === undefined
    ? selection
    : { ...selection, usedBefore: Math.min(since, selection.usedBefore ?? since) };
}
