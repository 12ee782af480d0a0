import { BoughError } from "../../errors.ts";
import type { BuildRecord, BuildStep } from "../../history/build-record.ts";
import {
  type BuildComparison,
  compareBuilds,
  type StepChange,
  shownChanges,
  stepSeconds,
} from "../../history/compare-builds.ts";
import { renderExplanation } from "../../terminal/explanation.ts";
import { formatDuration } from "../../terminal/quantity.ts";
import { type Cell, renderTable, type TableStyle } from "../../terminal/table.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import {
  buildArgument,
  earlierBuild,
  requireBuild,
  requireRecord,
  withHistory,
  withSizes,
} from "./find-build.ts";
import { signedBytes } from "./show.ts";

export const diff = command({
  name: "diff",
  description:
    "Compare two builds: which steps became slower or faster, which are no longer cached and why, and sizes.",
  args: {
    before: {
      ...buildArgument,
      description: "The earlier build (default: the one before of the same Dockerfile and target)",
    },
    after: {
      ...buildArgument,
      description: "The later build (default: the last; of one ID given, it is this one)",
    },
  },
  run: compare,
  examples: [
    ["history diff", "the last build, and the one before it of the same thing"],
    ["history diff 3kx9", "another one, and the one before it"],
    ["history diff 3kx9 7m2p -f json", "two builds, as JSON"],
  ],
  agentNote:
    "Steps are compared by stage and text; one whose text has changed, by its place. Changes below 0.1 s or 10%, and of sizes below 10 kB or 1%, are left out of the table.",
});

async function compare(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  const [first, second] = values.positionals;
  const { before, after } = await withHistory(runtime, (builds, history) => {
    const one = requireBuild(first, builds);
    const after = second === undefined ? one : requireBuild(second, builds);
    const before = second === undefined ? earlierBuild(one, builds) : one;
    if (before === undefined)
      throw new BoughError(`the history has no earlier build of the same thing as ${one.id}`, {
        hint: "Name two builds: `bough history` lists them.",
      });
    const read = (build: typeof one) => withSizes(requireRecord(build, history), builds, history);
    return { before: read(before), after: read(after) };
  });
  const comparison = compareBuilds(before, after);
  printResult(invocation, {
    id: [before.id, after.id],
    json: toJson(before, after, comparison),
    table: (style) => renderComparison(before, after, comparison, style),
  });
}

function toJson(before: BuildRecord, after: BuildRecord, comparison: BuildComparison): object {
  const { seconds, cachedBefore, cachedAfter, steps } = comparison;
  const rounded = (value: number) => Math.round(value * 1000) / 1000;
  const side = (step: BuildStep | undefined) =>
    step === undefined
      ? null
      : {
          step: step.step,
          seconds: rounded(stepSeconds(step)),
          outcome: step.outcome,
          addedBytes: step.addedBytes,
        };
  return {
    before: { id: before.id, status: before.status, seconds: before.seconds, cached: cachedBefore },
    after: { id: after.id, status: after.status, seconds: after.seconds, cached: cachedAfter },
    seconds: rounded(seconds),
    steps: steps.map((change) => ({
      instruction: (change.after ?? change.before)?.title ?? "",
      before: side(change.before),
      after: side(change.after),
      seconds: rounded(change.seconds),
      bytes: change.bytes ?? null,
      isMissed: change.isMissed,
      isEdited: change.isEdited,
      because: reasonOf(change),
    })),
  };
}

function reasonOf({ after }: StepChange): string | null {
  return after?.reason ? renderExplanation(after.reason) : null;
}

function renderComparison(
  before: BuildRecord,
  after: BuildRecord,
  comparison: BuildComparison,
  style: TableStyle,
): string {
  const { seconds, cachedBefore, cachedAfter } = comparison;
  const share = ({ cached, layers }: typeof cachedBefore) => `${cached}/${layers}`;
  const total = renderTable(
    {
      header: ["", "BUILD", "STATUS", "TIME", "CACHED"],
      rows: [
        ["before", { whole: before.id }, before.status, formatDuration(before.seconds), share(cachedBefore)],
        ["after", { whole: after.id }, after.status, formatDuration(after.seconds), share(cachedAfter)],
        ["", "", "", signedDuration(seconds), ""],
      ],
    },
    style,
  );
  const shown = shownChanges(comparison);
  if (shown.length === 0) return `${total}\nNo step has changed noticeably.\n`;
  const hasBytes = shown.some(({ bytes }) => bytes !== undefined && bytes !== 0);
  const row = (change: StepChange): Cell[] => {
    const { before: was, after: is, bytes } = change;
    return [
      String((is ?? was)?.step ?? ""),
      was === undefined ? null : formatDuration(stepSeconds(was)),
      is === undefined ? null : formatDuration(stepSeconds(is)),
      signedDuration(change.seconds),
      ...(hasBytes ? [bytes === undefined || bytes === 0 ? null : signedBytes(bytes)] : []),
      changeOf(change),
      (is ?? was)?.title ?? "",
      reasonOf(change),
    ];
  };
  const header = [
    "STEP",
    "BEFORE",
    "AFTER",
    "CHANGE",
    ...(hasBytes ? ["SIZE"] : []),
    "RESULT",
    "INSTRUCTION",
    "WHY NOT CACHED",
  ];
  return `${total}\n${renderTable({ header, rows: shown.map(row) }, style)}`;
}

/** Returns a word or two for the change of a step's result. */
function changeOf({ before, after, isMissed, isEdited }: StepChange): string {
  if (before === undefined) return "new";
  if (after === undefined) return "gone";
  if (isMissed) return isEdited ? "edited, missed" : "missed";
  if (isEdited) return "edited";
  return before.outcome === after.outcome ? after.outcome : `${before.outcome}, now ${after.outcome}`;
}

function signedDuration(seconds: number): string {
  return `${seconds < 0 ? "-" : "+"}${formatDuration(Math.abs(seconds))}`;
}
