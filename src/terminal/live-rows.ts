import { paintDim, paintHeading } from "./color.ts";
import { truncateToWidth } from "./fit.ts";
import { describeActivity, type LiveState, type LiveStep, shownSteps } from "./live-state.ts";
import { tailRows } from "./output/output-tail.ts";
import { stepCounter } from "./step-count.ts";
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
const minNameColumns = 8;
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
  const width = style.columns - 1;
  const rows = shown.flatMap((step, index) => [
    headline(step, now, style),
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

/** Renders `[3/9] RUN make ...   12.3s`, with the time at the right edge even if the title is wider than computed. */
function headline(step: LiveStep, now: number, { columns, hasColor }: RowStyle): string {
  const width = columns - 1;
  const counter = `${sanitizeRow(counterOf(step, width))} `;
  const elapsed = ` ${formatElapsed(now - step.since)}`;
  const room = width - counter.length - elapsed.length;
  if (room < 1) return truncateToWidth(counter.trimEnd(), width);
  const shown = truncateToWidth(step.title, room);
  const toRightEdge = `${" ".repeat(room - Bun.stringWidth(shown))}\u001b[${width - elapsed.length + 1}G`;
  const paint = hasColor ? paintHeading : plain;
  return `${paint(counter + shown)}${toRightEdge}${elapsed}`;
}

/** Returns a step's counter, with a long stage name cut to leave space for the title. */
function counterOf(step: LiveStep, width: number): string {
  const { stage } = step;
  if (!stage?.name) return stepCounter(step);
  const maxName = Math.max(minNameColumns, Math.floor(width / 3));
  return stepCounter({ ...step, stage: { ...stage, name: truncateToWidth(stage.name, maxName) } });
}

/** `0.4s`, `59.9s`, `1m05s`, `1h02m` */
function formatElapsed(milliseconds: number): string {
  const tenths = Math.floor(Math.max(0, milliseconds) / 100);
  if (tenths < 600) return `${(tenths / 10).toFixed(1)}s`;
  const minutes = Math.floor(tenths / 600);
  const two = (value: number) => String(value).padStart(2, "0");
  if (minutes < 60) return `${minutes}m${two(Math.floor((tenths % 600) / 10))}s`;
  return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
}

function plain(text: string): string {
  return text;
}
