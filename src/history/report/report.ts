import type { BuildStep } from "../build-record.ts";
import { type CriticalPath, criticalPathOf } from "../critical-path.ts";
import { renderChanges } from "./comparison.ts";
import { renderInputs } from "./inputs.ts";
import { html, Markup } from "./markup.ts";
import { findMisses } from "./misses.ts";
import { renderFailure, renderFigures, renderHeader, renderMisses } from "./overview.ts";
import type { ReportData } from "./report-data.ts";
import { script } from "./script.ts";
import { renderSizes } from "./sizes.ts";
import { chooseLogs, type outcomeWords, renderSteps } from "./steps.ts";
import { style } from "./style.ts";
import { renderTimeLine } from "./time-line.ts";

/** The size limit of a page in bytes. Output of commands fills what the rest leaves. */
const maxBytes = 480_000;

/**
 * Renders a build as one self-contained HTML page, whose policy forbids all requests. The essential parts work without JavaScript. The
 * same data make the same page.
 */
export function renderBuildReport(data: ReportData): string {
  const path = criticalPathOf(data.record);
  const bare = renderPage(data, path, new Map());
  const room = Math.max(0, maxBytes - Buffer.byteLength(bare));
  return renderPage(data, path, chooseLogs(data.record, data.outputs, room));
}

/** @param logs the output of each step that is shown */
function renderPage(data: ReportData, path: CriticalPath, logs: ReadonlyMap<BuildStep, Markup>): string {
  const { record, earlier, sizes } = data;
  const hasSteps = record.steps.length > 0;
  const misses = findMisses(record.steps);
  const page = html`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${new Markup(policy)}">
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">
<title>${record.origin.name}: ${record.status} · bough build report</title>
<style>${new Markup(style)}</style></head><body><a class="skip" href="#steps">To the steps</a>
<svg width="0" height="0" aria-hidden="true"><defs><pattern id="pf" width="6" height="6" patternUnits="userSpaceOnUse"><path class="pf" d="M0 0L6 6M6 0L0 6" stroke-width="1.3"/></pattern><pattern id="ps" width="6" height="6" patternUnits="userSpaceOnUse"><path class="ps" d="M0 6L6 0" stroke-width="1.6"/></pattern></defs></svg>
<main>${renderHeader(data)}
${renderFailure(data)}
${renderFigures(data, path)}
${hasSteps ? html`<section aria-labelledby="time"><h2 id="time">Where the time went</h2>${legend}${renderTimeLine(record, path)}</section>` : undefined}
${renderMisses(record, misses)}
${renderChanges(record, earlier, misses)}
${hasSteps ? html`<section aria-labelledby="steps"><h2 id="steps">Steps</h2>${tools}${renderSteps({ record, path, misses, logs })}</section>` : undefined}
${renderSizes(sizes)}
${renderInputs(record)}
<footer>Made by bough ${record.origin.version}. This page asks nothing from anywhere, and the values of secrets are masked in it.</footer></main>
<script>${new Markup(script)}</script></body></html>
`;
  return page.text;
}

/** Returns the content security policy: the page loads nothing, and has only its own style and script. */
const policy = [
  "default-src 'none'",
  `style-src '${hashOf(style)}'`,
  `script-src '${hashOf(script)}'`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

function hashOf(text: string): string {
  return `sha256-${new Bun.CryptoHasher("sha256").update(text).digest("base64")}`;
}

const sample = (outcome: keyof typeof outcomeWords | "made crit", word: string) =>
  html`<li><svg aria-hidden="true"><rect class="${outcome}" x="1.5" y="2" width="27" height="10" rx="2"/></svg>${word}</li>`;

const legend = html`<ul class="legend">${sample("made", "built: filled")}${sample("cached", "cached: hollow")}${sample("failed", "failed: crossed")}${sample("stopped", "stopped: striped")}<li><svg aria-hidden="true"><line class="wait" x1="1" x2="29" y1="7" y2="7"/></svg>waited: dotted</li>${sample("made crit", "critical path: framed")}</ul>`;

const tools = html`<div class="tools" id="tools" hidden><input id="find" type="search" placeholder="Find in steps and output" aria-label="Find in steps and output"><button type="button" data-kind="all" aria-pressed="true">All</button><button type="button" data-kind="crit" aria-pressed="false">Critical</button><button type="button" data-kind="made" aria-pressed="false">Built</button><button type="button" data-kind="failed" aria-pressed="false">Failed</button><button type="button" id="unfold">Open or close all</button><span id="count" role="status"></span></div>`;
