import { paintDim, paintHeading } from "./color.ts";
import { truncateToWidth } from "./fit.ts";
import { describeActivity, type LiveState, type LiveStep, shownSteps } from "./live-state.ts";
import { tailRows } from "./output/output-tail.ts";
import { stepCounter } from "./step-count.ts";
import { sanitizeRow } from "./terminal-text.ts";

export interface RowStyle {
  /** The terminal's width. */
  columns: number;
  lines: number;
  hasColor: boolean;
}

/** Room that is left to the log lines above. */
const linesForLog = 4;
const maxOutputRows = 8;
const indent = "  ";

/**
 * The live view as rows, each narrower than the terminal. `now`: milliseconds since the epoch. Steps that are at work at
 * once share the room.
 */
export function renderLiveRows(state: LiveState, now: number, style: RowStyle): string[] {
  const steps = shownSteps(state);
  const roomForDetails = (style.lines - linesForLog - (steps.length - 1)) / steps.length;
  const room = Math.max(0, Math.min(maxOutputRows, Math.floor(roomForDetails)));
  return steps.flatMap((step) => renderStep(step, now, { ...style, room, isAlone: steps.length === 1 }));
}

interface StepStyle extends RowStyle {
  /** For rows below the headline. */
  room: number;
  isAlone: boolean;
}

function renderStep(step: LiveStep, now: number, style: StepStyle): string[] {
  const { activity, tail } = step;
  const width = style.columns - 1;
  const details = [
    ...(activity === undefined ? [] : [sanitizeRow(describeActivity(activity, now))]),
    ...tailRows(tail, maxOutputRows),
  ];
  const dim = style.hasColor ? paintDim : plain;
  return [
    headline(step, now, style),
    ...details
      .slice(Math.max(0, details.length - style.room))
      .map((row) => dim(truncateToWidth(indent + row, width))),
  ];
}

/** `[3/9] RUN make ...   12.3s`: the time at the right edge, even where the title is wider than it was taken to be. */
function headline(step: LiveStep, now: number, { columns, hasColor, isAlone }: StepStyle): string {
  const width = columns - 1;
  const counter = `${sanitizeRow(stepCounter(step, step.steps, isAlone))} `;
  const elapsed = ` ${formatElapsed(now - step.since)}`;
  const room = width - counter.length - elapsed.length;
  if (room < 1) return truncateToWidth(counter.trimEnd(), width);
  const shown = truncateToWidth(step.title, room);
  const toRightEdge = `${" ".repeat(room - Bun.stringWidth(shown))}\u001b[${width - elapsed.length + 1}G`;
  const paint = hasColor ? paintHeading : plain;
  return `${paint(counter + shown)}${toRightEdge}${elapsed}`;
}

/** `0.4s`, `59.9s`, `1m05s`, `1h02m` */
export function formatElapsed(milliseconds: number): string {
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
