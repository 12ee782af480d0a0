import type { Clock } from "../../clock.ts";
import type { PruneSelection } from "../../engine/prune/selection.ts";
import { BoughError } from "../../errors.ts";
import { quoted } from "../../visible.ts";
import type { Values } from "../command-line/arguments.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { parseTime } from "../command-line/time.ts";

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

const sizeUnits: Readonly<Record<string, number>> = { k: 1, m: 2, g: 3, t: 4 };

/**
 * Parses the size that an option or a variable takes: `10GB`, `1.5G` or `512MiB`. Units are powers of 1000, as in bough's output;
 * with an i, of 1024.
 */
export function parseKept(text: string, name: string): number {
  const [, digits, unit = "", binary] = /^(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(i?)b?$/i.exec(text) ?? [];
  if (digits !== undefined)
    return Number(digits) * (binary === "" ? 1000 : 1024) ** (sizeUnits[unit.toLowerCase()] ?? 0);
  throw new BoughError(`${name} takes a size, not ${quoted(text)}`, {
    kind: "usage",
    hint: `For example ${name === "--keep" ? "--keep 10GB, or --keep 500MB" : `${name}=10GB, or ${name}=off`}.`,
  });
}
