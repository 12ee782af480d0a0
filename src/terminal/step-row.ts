import { truncateToWidth } from "./fit.ts";
import type { LiveStep } from "./live-state.ts";
import { stepCounter } from "./step-count.ts";
import { sanitizeRow } from "./terminal-text.ts";

interface StepRowStyle {
  /** The terminal's width. */
  columns: number;
  /** Paints the step, without its end. */
  paint: (text: string) => string;
}

const minNameColumns = 8;
/** The title keeps these columns before a note is left out. */
const minTitleColumns = 30;

/**
 * Renders `[3/9] RUN make ...   12.3s`, narrower than the terminal, with `end` at the right edge even if the title is wider than
 * computed. A step's note, such as `2 files, 41 kB`, precedes its end if there is room.
 */
export function renderStepRow(step: LiveStep, end: string, { columns, paint }: StepRowStyle): string {
  const width = columns - 1;
  const counter = `${sanitizeRow(counterOf(step, width))} `;
  const noted = step.note === undefined ? ` ${end}` : `  ${step.note}  ${end}`;
  const noteFits = width - counter.length - noted.length >= Math.min(minTitleColumns, step.title.length);
  const right = noteFits ? noted : ` ${end}`;
  const room = width - counter.length - right.length;
  if (room < 1) return truncateToWidth(counter.trimEnd(), width);
  const shown = truncateToWidth(step.title, room);
  const toRightEdge = `${" ".repeat(room - Bun.stringWidth(shown))}\u001b[${width - right.length + 1}G`;
  return `${paint(counter + shown)}${toRightEdge}${right}`;
}

/** Returns a step's counter, with a long stage name cut to leave space for the title. */
function counterOf(step: LiveStep, width: number): string {
  const { stage } = step;
  if (!stage?.name) return stepCounter(step);
  const maxName = Math.max(minNameColumns, Math.floor(width / 3));
  return stepCounter({ ...step, stage: { ...stage, name: truncateToWidth(stage.name, maxName) } });
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
