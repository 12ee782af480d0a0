import { paintDim, paintHeading } from "./color.ts";
import { shorten } from "./fit.ts";
import { describeActivity, type LiveState } from "./live-state.ts";
import { tailRows } from "./output-tail.ts";
import { plainRow } from "./terminal-text.ts";

export interface RowStyle {
  /** Of the terminal. */
  columns: number;
  lines: number;
  hasColor: boolean;
}

/** Room that is left to the log lines above. */
const linesForLog = 4;
const mostOutputRows = 8;
const indent = "  ";

/** The live view as rows, each narrower than the terminal. `now`: milliseconds since the epoch. */
export function renderLiveRows(state: LiveState, now: number, style: RowStyle): string[] {
  const { step, activity, tail } = state;
  if (step === undefined) return [];
  const width = style.columns - 1;
  const room = Math.max(0, Math.min(mostOutputRows, style.lines - linesForLog));
  const details = [
    ...(activity === undefined ? [] : [plainRow(describeActivity(activity, now))]),
    ...tailRows(tail, mostOutputRows),
  ];
  const dim = style.hasColor ? paintDim : plain;
  return [
    headline(step, now, width, style.hasColor ? paintHeading : plain),
    ...details.slice(Math.max(0, details.length - room)).map((row) => dim(shorten(indent + row, width))),
  ];
}

/** `[3/9] RUN make ...   12.3s`: the time at the right edge, even where the title is wider than it was taken to be. */
function headline(
  { number, count, title, since }: NonNullable<LiveState["step"]>,
  now: number,
  width: number,
  paint: (text: string) => string,
): string {
  const counter = `[${number}/${count}] `;
  const elapsed = ` ${formatElapsed(now - since)}`;
  const room = width - counter.length - elapsed.length;
  if (room < 1) return shorten(counter.trimEnd(), width);
  const shown = shorten(title, room);
  const toRightEdge = `${" ".repeat(room - Bun.stringWidth(shown))}\u001b[${width - elapsed.length + 1}G`;
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
