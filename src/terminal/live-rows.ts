import { paintDim, paintHeading } from "./color.ts";
import { truncateToWidth } from "./fit.ts";
import { describeActivity, type LiveState, type LiveStep, shownSteps } from "./live-state.ts";
import { tailRows } from "./output/held-output.ts";
import { formatElapsed, renderStepRow } from "./step-row.ts";
import { sanitizeRow } from "./terminal-text.ts";

interface RowStyle {
  /** The terminal's width. */
  columns: number;
  lines: number;
  hasColor: boolean;
}

/** Lines left for log lines above and the cursor below. */
const linesLeftFree = 3;
const maxOutputRows = 8;
const indent = "  ";

/**
 * Renders the live view as rows, each narrower than the terminal. `now`: milliseconds since the epoch. Running steps share the
 * space, in the order of the Dockerfile. If there is not a row for each, the oldest are shown.
 */
export function renderLiveRows(state: LiveState, now: number, style: RowStyle): string[] {
  const steps = shownSteps(state);
  const room = Math.max(1, style.lines - linesLeftFree);
  const hidden = steps.length <= room ? 0 : steps.length - Math.max(1, room - 1);
  const shown = steps.slice(0, steps.length - hidden).sort((one, other) => one.step - other.step);
  const details = shown.map((step) => detailRows(step, now));
  const level = shareRoom(
    details.map(({ length }) => length),
    style.lines - linesLeftFree - shown.length - (hidden === 0 ? 0 : 1),
  );
  const dim = style.hasColor ? paintDim : plain;
  const heading = style.hasColor ? paintHeading : plain;
  const width = style.columns - 1;
  const rows = shown.flatMap((step, index) => [
    renderStepRow(step, formatElapsed(now - step.since), { columns: style.columns, paint: heading }),
    ...lastOf(details[index] ?? [], level).map((row) => dim(truncateToWidth(indent + row, width))),
  ]);
  return hidden === 0 || room === 1 ? rows : [...rows, dim(truncateToWidth(`… and ${hidden} more`, width))];
}

/** Returns rows with a step's activity, and below it the end of its command's output. */
function detailRows({ activity, tail }: LiveStep, now: number): readonly string[] {
  const doing = activity === undefined ? [] : [sanitizeRow(describeActivity(activity, now))];
  return lastOf([...doing, ...tailRows(tail, maxOutputRows)], maxOutputRows);
}

/** Returns the maximum number of rows for each step so that all fit. Rows that one does not need go to the others. */
function shareRoom(wanted: readonly number[], room: number): number {
  const isEnough = (level: number) => wanted.reduce((sum, rows) => sum + Math.min(rows, level), 0) <= room;
  let level = 0;
  while (level < maxOutputRows && isEnough(level + 1)) level++;
  return level;
}

function lastOf(rows: readonly string[], count: number): readonly string[] {
  return count === 0 ? [] : rows.slice(-count);
}

function plain(text: string): string {
  return text;
}
