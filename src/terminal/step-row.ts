import type { BuildEvent, StepInStage } from "../builder/events.ts";
import type { StepRecord } from "../builder/result.ts";
import type { StageLabel, StepPlace } from "../builder/step-place.ts";
import type { Clock } from "../clock.ts";
import { paintDim, paintHeading } from "./color.ts";
import { truncateToWidth } from "./fit.ts";
import { createLiveArea, type Screen } from "./live-area.ts";
import { describeActivity, type LiveState, type LiveStep, shownSteps } from "./live-state.ts";
import { tailRows } from "./output/held-output.ts";
import { sanitizeRow } from "./terminal-text.ts";

interface StepRowStyle {
  /** The terminal's width. */
  columns: number;
  /** Paints the step, without its end. */
  paint: (text: string) => string;
}

const minNameColumns = 8;
/** The minimum width of the title for which a note is shown. */
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

/** A step and the number of all steps; `inStage` if its stage is shown. */
type CountedStep = StepPlace & { steps: number; inStage?: StepInStage | undefined };

/** Returns `[3/9]`, or with its stage, as Docker does, `[build 2/5]` or `[stage-1 2/5]`. */
export function stepCounter({ stage, step, steps, inStage }: CountedStep): string {
  if (stage === null || inStage === undefined) return `[${step}/${steps}]`;
  return `[${stageName(stage)} ${inStage.step}/${inStage.steps}]`;
}

/** Returns a stage's name, or `stage-1` if it has none, as Docker does. */
export function stageName({ index, name }: StageLabel): string {
  return name ?? `stage-${index}`;
}

/** Labels for the lines of steps that run at the same time. */
interface StepLabels {
  note(event: BuildEvent): void;
  /** Returns `[build 2/5] ` for a step that is shown with its stage, otherwise an empty text. */
  labelOf(place: { step?: number | undefined }): string;
  /** The number of running steps. */
  readonly running: number;
}

export function createStepLabels(): StepLabels {
  const running = new Set<number>();
  /** Labels by step. */
  const labels = new Map<number, string>();
  return {
    note(event) {
      if (event.type === "forgotten-layer") running.clear();
      if (event.type === "step-end" || event.type === "step-failed") running.delete(event.step);
      if (event.type !== "step") return;
      running.add(event.step);
      if (event.inStage !== undefined) labels.set(event.step, `${stepCounter(event)} `);
    },
    labelOf: ({ step }) => (step === undefined ? undefined : labels.get(step)) ?? "",
    get running() {
      return running.size;
    },
  };
}

/**
 * Counts steps of the Dockerfile, as `[n/m]` does. Work that remains after a stage's last instruction has its own record with
 * that instruction's number.
 */
export function countSteps(records: readonly StepRecord[]): number {
  return new Set(records.map(({ step }) => step)).size;
}

/** One line of a terminal with the progress of long work. */
interface ProgressRow {
  show(text: string): void;
  /** Erases the line. */
  end(): void;
}

const frameMilliseconds = 100;

/** Creates a progress row. Without a `terminal` it shows nothing. */
export function createProgressRow(clock: Clock, terminal: Screen | undefined): ProgressRow {
  if (terminal === undefined) return { show() {}, end() {} };
  const area = createLiveArea(terminal);
  let shownAt = Number.NEGATIVE_INFINITY;
  return {
    show(text) {
      if (clock.now() - shownAt < frameMilliseconds) return;
      shownAt = clock.now();
      area.draw([truncateToWidth(text, terminal.columns - 1)]);
    },
    end() {
      if (shownAt > Number.NEGATIVE_INFINITY) area.draw([]);
    },
  };
}

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
