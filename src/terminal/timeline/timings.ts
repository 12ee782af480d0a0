import type { StepPlace } from "../../builder/step-place.ts";
import { visible } from "../../visible.ts";
import { truncateToWidth } from "../fit.ts";
import { formatCount, formatDuration } from "../quantity.ts";
import { stepCounter } from "../step-row.ts";
import { findChain, findCriticalPath, type RecordedBuild, type Span, type StepSpan } from "./spans.ts";

/** The steps on which a build spent its time. */
interface Timings {
  seconds: number;
  criticalPath: readonly StepSpan[];
  /** The slowest first. */
  slowest: readonly StepSpan[];
  requests: RequestTimings;
}

/** Requests to the service. Those in sequence waited for one another, and the build for them. */
interface RequestTimings {
  count: number;
  inSequence: number;
  /** The time of those in sequence. */
  seconds: number;
}

const maxSlowest = 10;
/** Steps with a smaller share of the build's time get no line. */
const minShare = 0.01;

export function timingsOf(build: RecordedBuild): Timings {
  const { start, end, seconds, steps, requests } = build;
  const least = (end - start) * minShare;
  const slowest = steps
    .filter((step) => step.end - step.start >= least)
    .sort((one, other) => other.end - other.start - (one.end - one.start))
    .slice(0, maxSlowest);
  const chain = findChain(build).filter((span) => requests.includes(span));
  return {
    seconds: seconds ?? (end - start) / 1000,
    criticalPath: findCriticalPath(steps),
    slowest,
    requests: { count: requests.length, inSequence: chain.length, seconds: sum(chain) },
  };
}

/** Describes the timings for programs. `start`: seconds since the build's beginning. */
export function describeTimings(
  { criticalPath, slowest, seconds, requests }: Timings,
  { start }: RecordedBuild,
): object {
  const rounded = (milliseconds: number) => Math.round(milliseconds) / 1000;
  const describe = (step: StepSpan): StepPlace & Record<string, unknown> => ({
    ...{ stage: step.stage, step: step.step, line: step.line, instruction: step.name },
    ...{ start: rounded(step.start - start), seconds: rounded(step.end - step.start) },
  });
  return {
    seconds: rounded(seconds * 1000),
    criticalPath: criticalPath.map(describe),
    slowest: slowest.map(describe),
    requests: { ...requests, seconds: rounded(requests.seconds * 1000) },
  };
}

/**
 * Renders the timings in lines of fewer than `columns`: the critical path, with each step's position in the build's time, the
 * requests that waited for one another, and the slowest steps, with their duration.
 */
export function renderTimings(timings: Timings, build: RecordedBuild, columns: number): string {
  const { criticalPath, slowest, seconds, requests } = timings;
  const total = Math.max(build.end - build.start, 1);
  const shown = criticalPath.filter((step) => step.end - step.start >= total * minShare);
  const others = criticalPath.filter((step) => !shown.includes(step));
  const barWidth = Math.min(24, Math.floor(columns * 0.3));
  const row = (step: StepSpan, bar: string) => renderRow(step, bar, columns - 1 - barWidth);
  const cells = (milliseconds: number) => Math.round((milliseconds / total) * barWidth);
  const inTime = (step: StepSpan) => {
    const offset = Math.min(cells(step.start - build.start), barWidth - 1);
    return " ".repeat(offset) + barOf(Math.min(cells(step.end - build.start), barWidth) - offset);
  };
  const longest = Math.max(...slowest.map((step) => step.end - step.start), 1);
  const byLength = (step: StepSpan) => barOf(Math.round(((step.end - step.start) / longest) * barWidth));
  const rest =
    others.length === 0
      ? []
      : [`  and ${formatCount(others.length, "shorter step")}: ${formatDuration(sum(others))}`];
  const lines = [
    `critical path: ${formatCount(criticalPath.length, "step")}, ${formatDuration(sum(criticalPath))} of ${formatDuration(seconds)}`,
    ...shown.map((step) => row(step, inTime(step))),
    ...rest,
    ...(requests.count === 0
      ? []
      : [
          `${formatCount(requests.count, "request")}, ${requests.inSequence} of them one after the other, in ${formatDuration(requests.seconds)}`,
        ]),
    ...(slowest.length === 0 ? [] : ["slowest steps:"]),
    ...slowest.map((step) => row(step, byLength(step))),
  ];
  return lines.map((line) => `${truncateToWidth(line, columns - 1)}\n`).join("");
}

const timeWidth = 10;

function renderRow(step: StepSpan, bar: string, width: number): string {
  const title = truncateToWidth(`  ${visible(`${stepCounter(step)} ${step.name}`)}`, width - timeWidth - 2);
  const padding = " ".repeat(Math.max(0, width - timeWidth - 2 - Bun.stringWidth(title)));
  return `${title}${padding}${formatDuration(secondsOf(step)).padStart(timeWidth)}  ${bar}`.trimEnd();
}

function barOf(cells: number): string {
  return cells < 1 ? "▏" : "█".repeat(cells);
}

function sum(spans: readonly Span[]): number {
  return spans.reduce((seconds, span) => seconds + secondsOf(span), 0);
}

function secondsOf({ start, end }: Span): number {
  return (end - start) / 1000;
}
