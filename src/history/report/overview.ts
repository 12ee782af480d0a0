import { formatBytes, formatCount, formatDuration } from "../../terminal/quantity.ts";
import { type BuildRecord, type BuildStatus, type BuildStep, countCached } from "../build-record.ts";
import type { CriticalPath } from "../critical-path.ts";
import { clipped, html, type Markup, terminalLines } from "./markup.ts";
import { type Misses, renderLinks } from "./misses.ts";
import type { DirectorySize, ImageSizes, ReportData } from "./report-data.ts";

const statusSigns: Readonly<Record<BuildStatus, string>> = {
  running: "▸",
  succeeded: "✓",
  failed: "✕",
  interrupted: "◼",
};

export function renderHeader({ record }: ReportData): Markup {
  const { origin, status, startedAt, id } = record;
  const began = new Date(startedAt).toISOString();
  return html`<header><p class="brand">bough build report</p><h1>${origin.name}</h1>
<p class="meta"><span class="status ${status}"><span aria-hidden="true">${statusSigns[status]}</span> ${status}</span> <time datetime="${began}">${began.slice(0, 16).replace("T", " ")} UTC</time> <span>${doorWords[origin.door]}${origin.isCi ? " in a pipeline" : ""}</span> <span>build <code>${id}</code></span></p></header>`;
}

const doorWords = {
  build: "by bough build",
  bake: "by bough bake",
  docker: "by docker",
  mcp: "by a coding agent",
} as const;

/** Renders the main figures, each with a link to its details. */
export function renderFigures({ record, sizes, earlier }: ReportData, path: CriticalPath): Markup {
  const { layers, cached } = countCached(record.steps);
  const { slowest } = path;
  const seconds = slowest === undefined ? 0 : (slowest.end - slowest.start) / 1000;
  const share = record.seconds > 0 ? Math.min(100, Math.round((seconds / record.seconds) * 100)) : 0;
  const change = earlier === undefined ? undefined : record.seconds - earlier.seconds;
  const misses = record.steps.filter((step) => step.reason !== null).length;
  return html`<ul class="figures">
${figure("Time", formatDuration(record.seconds), change === undefined ? `${formatCount(record.steps.length, "step")}` : `${change < 0 ? "−" : "+"}${formatDuration(Math.abs(change))} against the build before`)}
${slowest === undefined ? undefined : figure("Slowest on the critical path", html`<a href="#s${slowest.step}">step ${slowest.step}</a>`, html`<code>${clipped(slowest.title, 60)}</code> ${formatDuration(seconds)}, ${share}% of the time`)}
${layers === 0 ? undefined : figure("From the cache", `${cached} of ${layers}`, misses === 0 ? "every layer was there" : html`<a href="#misses">why the others were not</a>`)}
${sizes === undefined ? undefined : figure("Image", formatBytes(sizes.bytes), renderLargest(sizes))}
</ul>`;
}

/** Names the deepest directory that has half of the image; else the largest one. */
function renderLargest({ root }: ImageSizes): Markup {
  let largest = root.children[0];
  if (largest === undefined) return html`no files`;
  let path = `/${largest.name}`;
  for (;;) {
    const inner: DirectorySize | undefined = largest.children[0];
    if (inner === undefined || !inner.isDirectory || inner.bytes < root.bytes / 2) break;
    path += `/${inner.name}`;
    largest = inner;
  }
  const share = Math.round((largest.bytes / Math.max(root.bytes, 1)) * 100);
  return html`<a href="#sizes">${share}% of it in ${path}</a>`;
}

function figure(name: string, value: Markup | string, more: Markup | string): Markup {
  return html`<li><h2>${name}</h2><p class="value">${value}</p><p class="more">${more}</p></li>`;
}

/** Renders the error and the end of the failed command's output, which come first on the page of a failed build. */
export function renderFailure({ record, outputs }: ReportData): Markup | undefined {
  const { error, steps, status } = record;
  if (error === null) return undefined;
  const failed = steps.find(({ outcome }) => outcome === "failed");
  const output = failed && outputs.get(failed.step)?.trimEnd();
  const tail = output?.split("\n").slice(-maxErrorLines).join("\n").slice(-maxErrorLength);
  return html`<section class="failure" aria-labelledby="failure"><h2 id="failure">${status === "failed" ? "What went wrong" : "It did not end"}</h2>
${failed === undefined ? undefined : html`<p><a href="#s${failed.step}">Step ${failed.step}</a> failed: <code>${clipped(failed.title, 300)}</code></p>`}
${tail ? html`<pre tabindex="0" aria-label="The end of its output">${terminalLines(tail)}</pre>` : undefined}
<pre class="error">${terminalLines(error.message)}</pre>${error.hint === null ? undefined : html`<pre class="hint">${terminalLines(error.hint)}</pre>`}</section>`;
}

const maxErrorLines = 15;
const maxErrorLength = 4000;

/** Renders the causes of misses: the steps after a changed layer have none of their own. */
export function renderMisses({ steps }: BuildRecord, misses: Misses): Markup {
  const { causes } = misses;
  return html`<section class="misses" aria-labelledby="misses"><h2 id="misses">Why it was not cached</h2>
${causes.length === 0 ? html`<p>${noMisses(steps)}</p>` : hasOneCause(causes) ? html`<p>All ${causes.length} layers were built: ${misses.render(causes[0])}.</p>` : renderCauses(misses)}</section>`;
}

function noMisses(steps: readonly BuildStep[]): string {
  return steps.some(({ outcome }) => outcome === "cached")
    ? "Every layer that could be was in the cache."
    : "No layer had to be looked for.";
}

/** Returns true if one cause explains all misses, such as `--no-cache`. */
function hasOneCause(causes: readonly BuildStep[]): causes is readonly [BuildStep, ...BuildStep[]] {
  const reasons = new Set(causes.map(({ reason }) => reason?.reason));
  return causes.length > 3 && reasons.size === 1 && (reasons.has("first build") || reasons.has("--no-cache"));
}

function renderCauses({ causes, following, render }: Misses): Markup {
  const rows = causes.slice(0, maxCauses).map((step) => {
    const more = following(step);
    return html`<tr><td><a href="#s${step.step}">${step.step}</a></td><td><code>${clipped(step.title, 120)}</code></td><td>${render(step)}${more.length === 0 ? undefined : html`<br><small>and so ${renderLinks(more)}, which ${more.length === 1 ? "builds" : "build"} on it</small>`}</td></tr>`;
  });
  return html`<div class="wide"><table class="stack"><thead><tr><th scope="col">Step</th><th scope="col">Instruction</th><th scope="col">Because</th></tr></thead><tbody>${rows}</tbody></table></div>${causes.length > maxCauses ? html`<p class="more">and ${causes.length - maxCauses} more, in the list of steps</p>` : undefined}`;
}

const maxCauses = 25;
