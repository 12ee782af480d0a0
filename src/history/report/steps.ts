import { formatBytes, formatCount, formatDuration } from "../../terminal/quantity.ts";
import type { BuildRecord, BuildStep, StepOutcome } from "../build-record.ts";
import type { CriticalPath } from "../critical-path.ts";
import { clipped, html, type Markup, terminalLines } from "./markup.ts";
import type { Misses } from "./misses.ts";
import { orderedStages, type StageOfBuild } from "./stages.ts";
import { renderRowBar, totalOf } from "./time-line.ts";

/** The words for outcomes. A sign before each makes them distinct without colours. */
export const outcomeWords: Readonly<Record<StepOutcome, string>> = {
  cached: "cached",
  made: "built",
  done: "no layer",
  failed: "failed",
  stopped: "stopped",
};

interface StepList {
  record: BuildRecord;
  path: CriticalPath;
  misses: Misses;
  /** The output of each step that is shown. */
  logs: ReadonlyMap<BuildStep, Markup>;
}

/** Renders a list of all steps by stage. Each opens to its details. */
export function renderSteps(list: StepList): Markup {
  const { record, path } = list;
  const total = totalOf(record);
  const critical = new Set(path.steps);
  const stages = orderedStages(record.steps);
  const ends = new Map(stages.map((stage) => [stage, previousEnds(stage)]));
  return html`${stages.map(
    (
      stage,
    ) => html`<section class="stage"><h3>${stage.name} <small>${formatCount(stage.steps.length, "step")}, ${formatDuration((stage.end - stage.start) / 1000)}</small></h3>
${stage.steps.map((step) => {
  const isCritical = critical.has(step) && step.end - step.start >= total * minCritical;
  const waitedSince = ends.get(stage)?.get(step);
  return html`<details class="s ${step.outcome}${isCritical ? " crit" : ""}" id="s${step.step}${step.isRest ? "r" : ""}"><summary><b class="n">${step.step}</b><code class="t">${clipped(step.title, maxRowTitle)}</code>${renderRowBar(step, { total, isCritical, waitedSince })}<span class="d">${formatDuration((step.end - step.start) / 1000)}</span><span class="o">${outcomeWords[step.outcome]}${isCritical ? html` <i>critical</i>` : undefined}</span></summary>
${renderDetails(step, list)}</details>
`;
})}</section>`,
  )}`;
}

/** The minimum share of the time for which a step of the critical path is marked. */
const minCritical = 0.005;
const maxRowTitle = 100;
const maxTitle = 1200;
/** The maximum length of a title where there are many steps. */
const maxTitleOfMany = 240;
const many = 200;

/** Returns for each step when the one before it in its stage ended. */
function previousEnds({ steps }: StageOfBuild): ReadonlyMap<BuildStep, number> {
  return new Map(steps.map((step, at) => [step, steps[at - 1]?.end ?? step.start]));
}

function renderDetails(step: BuildStep, { record, path, misses, logs }: StepList): Markup {
  const last = path.waitedFor(step);
  // Each step waits for the one before it, so that is not shown.
  const waited = last?.stage?.index === step.stage?.index ? undefined : last;
  const facts: [name: string, value: Markup | string | number | undefined][] = [
    [
      "Instruction",
      step.title.length > maxRowTitle
        ? html`<code>${clipped(step.title, record.steps.length > many ? maxTitleOfMany : maxTitle)}</code>`
        : undefined,
    ],
    ["Line", step.line],
    ["Not cached because", misses.render(step)],
    ["From", step.scope ?? undefined],
    [
      "Waited for",
      waited === undefined
        ? undefined
        : html`<a href="#s${waited.step}">step ${waited.step}</a>, until ${formatDuration(step.start / 1000)}`,
    ],
    ["Did", step.activities.length < 2 ? undefined : activities(step)],
    ["Layer", step.addedBytes === null ? undefined : `adds ${formatBytes(step.addedBytes)}`],
    ["Sent", step.uploadedBytes === 0 ? undefined : formatBytes(step.uploadedBytes)],
  ];
  const shown = facts.filter(([, value]) => value !== undefined);
  return html`<dl>${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>${logs.get(step)}`;
}

function activities(step: BuildStep): string {
  return step.activities
    .map(({ name, start, end }) => `${name} ${formatDuration((end - start) / 1000)}`)
    .join(", ");
}

/** The limit of characters of each step's output. */
const maxLog = 24_000;
const maxFailedLog = 64_000;
const maxShortLog = 8_000;
const maxCutLog = 2_000;

/**
 * Chooses the output to show within `room` characters of HTML: first that of failed steps, then of the slowest ones. Long output is cut
 * to its end. Without room, the command that prints it is shown.
 */
export function chooseLogs(
  { id, steps }: BuildRecord,
  outputs: ReadonlyMap<number, string>,
  room: number,
): Map<BuildStep, Markup> {
  const weight = (step: BuildStep) => (step.outcome === "failed" ? 1e12 : 0) + (step.end - step.start);
  const printed = steps
    .toSorted((one, other) => weight(other) - weight(one))
    .flatMap((step) => {
      const text = step.isRest ? undefined : outputs.get(step.step)?.trimEnd();
      return text ? [{ step, text, whole: html`<code>bough history logs ${id} ${step.step}</code>` }] : [];
    });
  const logs = new Map(
    printed.map(({ step, whole }) => [step, html`<p class="cut">Its output: ${whole}</p>`] as const),
  );
  let left = room - logs.values().reduce((sum, { text }) => sum + text.length, 0);
  for (const { step, text, whole } of printed) {
    const isKept = step.output?.length === step.output?.kept;
    const most = step.outcome === "failed" ? maxFailedLog : maxLog;
    // Output that can't fit is not rendered.
    const markup = [most, maxShortLog, maxCutLog]
      .values()
      .map((length) => text.slice(-length))
      .filter((part) => part.length < left)
      .map((part) => renderLog(part, part.length === text.length && isKept, whole))
      .find(({ text: written }) => written.length <= left);
    if (markup === undefined) break;
    left -= markup.text.length;
    logs.set(step, markup);
  }
  return logs;
}

function renderLog(text: string, isWhole: boolean, whole: Markup): Markup {
  const note = isWhole
    ? undefined
    : html`<p class="cut">This is the end of the output: ${whole} prints all that is kept.</p>`;
  return html`${note}<pre tabindex="0" aria-label="Output">${terminalLines(text)}</pre>`;
}
