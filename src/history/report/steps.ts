import { formatBytes, formatCount, formatDuration } from "../../terminal/quantity.ts";
import type { BuildRecord, BuildStep, StepOutcome } from "../build-record.ts";
import type { CriticalPath } from "../critical-path.ts";
import { clipped, html, lines, type Markup } from "./markup.ts";
import type { Misses } from "./misses.ts";
import { orderedStages, type StageOfBuild } from "./stages.ts";
import { renderRowBar, totalOf } from "./time-line.ts";

/** What a step's outcome is called. Its sign is before the word, for those who see no colours. */
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
  /** What is shown of each step's output. */
  logs: ReadonlyMap<BuildStep, Markup>;
}

/** Lists all steps by stage. Each opens to what is known of it. */
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
  const isCritical = critical.has(step) && step.end - step.start >= total * leastCritical;
  const waitedSince = ends.get(stage)?.get(step);
  return html`<details class="s ${step.outcome}${isCritical ? " crit" : ""}" id="s${step.step}${step.isRest ? "r" : ""}"><summary><b class="n">${step.step}</b><code class="t">${clipped(step.title, maxRowTitle)}</code>${renderRowBar(step, { total, isCritical, waitedSince })}<span class="d">${formatDuration((step.end - step.start) / 1000)}</span><span class="o">${outcomeWords[step.outcome]}${isCritical ? html` <i>critical</i>` : undefined}</span></summary>
${renderDetails(step, list)}</details>
`;
})}</section>`,
  )}`;
}

/** The share of the time below which a step of the critical path is not marked: nobody would look at it. */
const leastCritical = 0.005;
const maxRowTitle = 100;
const maxTitle = 1200;
/** Of many steps. */
const maxTitleOfMany = 240;
const many = 200;

/** When each step's turn had come: when the one before it in its stage had ended. */
function previousEnds({ steps }: StageOfBuild): ReadonlyMap<BuildStep, number> {
  return new Map(steps.map((step, at) => [step, steps[at - 1]?.end ?? step.start]));
}

function renderDetails(step: BuildStep, { record, path, misses, logs }: StepList): Markup {
  const last = path.waitedFor(step);
  // That it waited for the step before it goes without saying.
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

/** Characters of each step's output at most: a page is not an archive. */
const maxLog = 24_000;
const maxFailedLog = 64_000;
const maxShortLog = 8_000;
const maxCutLog = 2_000;

/**
 * Chooses what is shown of the output within `room` characters of HTML: first of failed steps, then of the slowest. Of what is too
 * long, the end. Where there is no room, the command that prints it.
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
    // What is certain not to fit is not rendered.
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
  return html`${note}<pre tabindex="0" aria-label="Output">${lines(text)}</pre>`;
}
