import { formatDuration } from "../../terminal/quantity.ts";
import type { BuildRecord, BuildStep } from "../build-record.ts";
import type { CriticalPath } from "../critical-path.ts";
import { clipped, coordinate, html, type Markup } from "./markup.ts";
import { orderedStages, type StageOfBuild } from "./stages.ts";

const laneHeight = 30;
const barHeight = 16;
const axisHeight = 26;

/** Renders all stages over the time, a lane each, with the critical path. The list below has the texts of the bars, too. */
export function renderTimeLine(record: BuildRecord, path: CriticalPath): Markup {
  const total = totalOf(record);
  const stages = orderedStages(record.steps);
  const height = stages.length * laneHeight + axisHeight;
  const ticks = ticksOf(total);
  const critical = new Set(path.steps);
  const isTitled = record.steps.length <= maxTitled;
  const places = new Map(stages.flatMap((stage, at) => stage.steps.map((step) => [step, at] as const)));
  return html`<div class="lanes"><div class="names" aria-hidden="true">${stages.map(
    ({ name }) => html`<span>${name}</span>`,
  )}</div><svg class="lines" width="100%" height="${height}" role="img" aria-label="${describe(record, stages)}"><g aria-hidden="true">
${ticks.map(
  (tick) =>
    html`<line class="grid" x1="${percent(tick, total)}" x2="${percent(tick, total)}" y1="0" y2="${height - axisHeight}"/><text class="tick${tick > total * 0.92 ? " end" : ""}" x="${percent(tick, total)}" y="${height - 8}">${formatTick(tick)}</text>`,
)}
${path.steps.map((step, at) => renderJoin(path.steps[at - 1], step, places, total))}
${stages.map((stage, lane) =>
  stage.steps.map((step) =>
    renderBar(step, { top: lane * laneHeight + 7, total, isCritical: critical.has(step), isTitled }),
  ),
)}
</g></svg></div>`;
}

/** Renders the bar of a step in its row of the list, after a line for the time that it waited. */
export function renderRowBar(
  step: BuildStep,
  { total, isCritical, waitedSince }: { total: number; isCritical: boolean; waitedSince: number | undefined },
): Markup {
  const waited =
    waitedSince === undefined || step.start - waitedSince < total * 0.002
      ? undefined
      : html`<line class="wait" x1="${percent(waitedSince, total)}" x2="${percent(step.start, total)}" y1="9" y2="9"/>`;
  return html`<svg class="b" height="18" aria-hidden="true">${waited}${bar(step, { top: 3, height: 12, total, isCritical })}</svg>`;
}

export function totalOf(record: Pick<BuildRecord, "seconds" | "steps">): number {
  return Math.max(record.seconds * 1000, ...record.steps.map(({ end }) => end), 1);
}

/** The list has all of it. */
const maxTitle = 40;
/** The limit of steps whose bars have titles: more would take room that their output needs. */
const maxTitled = 200;

interface BarForm {
  top: number;
  height: number;
  total: number;
  isCritical: boolean;
}

function renderBar(
  step: BuildStep,
  { isTitled, ...form }: Omit<BarForm, "height"> & { isTitled: boolean },
): Markup {
  const seconds = formatDuration((step.end - step.start) / 1000);
  const title = isTitled
    ? html`<title>${step.step}: ${clipped(step.title, maxTitle)}, ${seconds}</title>`
    : undefined;
  return html`<a href="#s${step.step}" tabindex="-1">${title}${bar(step, { ...form, height: barHeight })}</a>`;
}

function bar(step: BuildStep, { top, height, total, isCritical }: BarForm): Markup {
  const width = Math.max(coordinate(((step.end - step.start) / total) * 100), 0.1);
  const isFramed = isCritical && width >= minFramed;
  return html`<rect class="${step.outcome}${isFramed ? " crit" : ""}" x="${percent(step.start, total)}" y="${top}" width="${width}%" height="${height}"/>`;
}

/** The minimum width, in percent, for which something is left within a frame. */
const minFramed = 0.3;

/** Renders the line from a step of the critical path to the next one, if that is in another lane. */
function renderJoin(
  from: BuildStep | undefined,
  to: BuildStep,
  places: ReadonlyMap<BuildStep, number>,
  total: number,
): Markup | undefined {
  const [above, below] = [from && places.get(from), places.get(to)];
  if (from === undefined || above === undefined || below === undefined || above === below) return undefined;
  const y = (lane: number) => lane * laneHeight + 7 + barHeight / 2;
  const x = percent((from.end + to.start) / 2, total);
  return html`<line class="join" x1="${x}" x2="${x}" y1="${y(above)}" y2="${y(below)}"/>`;
}

function percent(time: number, total: number): string {
  return `${coordinate((Math.max(0, Math.min(time, total)) / total) * 100)}%`;
}

/** Returns some five round times. */
function ticksOf(total: number): number[] {
  const step = steps.find((each) => total / each <= 6) ?? Math.ceil(total / 6 / 3_600_000) * 3_600_000;
  return Array.from({ length: Math.floor(total / step) + 1 }, (_, at) => at * step);
}

const steps = [
  10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
].concat([600_000, 1_200_000, 1_800_000, 3_600_000]);

function formatTick(milliseconds: number): string {
  if (milliseconds === 0) return "0";
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${coordinate(seconds)} s`;
  if (seconds < 3600)
    return seconds % 60 === 0
      ? `${seconds / 60} min`
      : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} min`;
  return `${coordinate(seconds / 3600)} h`;
}

function describe({ seconds }: BuildRecord, stages: readonly StageOfBuild[]): string {
  const lanes = stages.map(
    ({ name, start, end }) => `${name} from ${formatDuration(start / 1000)} to ${formatDuration(end / 1000)}`,
  );
  return `Time line of ${formatDuration(seconds)}: ${lanes.join("; ")}. The list of steps has the same times.`;
}
