import { formatBytes, formatDuration } from "../../terminal/quantity.ts";
import type { BuildRecord } from "../build-record.ts";
import { compareBuilds, type StepChange, shownChanges, stepSeconds } from "../compare-builds.ts";
import { clipped, html, type Markup } from "./markup.ts";
import type { Misses } from "./misses.ts";

const maxRows = 15;

/** Shows what has changed since the build before of the same thing. */
export function renderChanges(
  record: BuildRecord,
  earlier: BuildRecord | undefined,
  misses: Misses,
): Markup | undefined {
  if (earlier === undefined) return undefined;
  const comparison = compareBuilds(earlier, record);
  const shown = shownChanges(comparison);
  const began = new Date(earlier.startedAt).toISOString().slice(0, 16).replace("T", " ");
  return html`<section class="changes" aria-labelledby="changes"><h2 id="changes">What changed since the build before</h2>
<p>Build <code>${earlier.id}</code> of ${began} UTC ${earlier.status} in ${formatDuration(earlier.seconds)}: this one took ${formatDuration(Math.abs(comparison.seconds))} ${comparison.seconds < 0 ? "less" : "more"}.</p>
${shown.length === 0 ? html`<p>No step has changed noticeably.</p>` : html`<div class="wide"><table class="stack"><thead><tr><th scope="col">Step</th><th scope="col">Instruction</th><th scope="col" class="num">Before</th><th scope="col" class="num">Now</th><th scope="col" class="num">Change</th><th scope="col">Because</th></tr></thead><tbody>${shown.slice(0, maxRows).map((change) => renderChange(change, misses))}</tbody></table></div>`}
${shown.length > maxRows ? html`<p class="more">and ${shown.length - maxRows} more: <code>bough history diff ${earlier.id} ${record.id}</code></p>` : undefined}</section>`;
}

function renderChange(change: StepChange, misses: Misses): Markup {
  const { before, after, bytes } = change;
  const step = after ?? before;
  const words = [
    before === undefined ? "new" : after === undefined ? "gone" : change.isEdited ? "edited" : "",
    change.isMissed ? "no longer cached" : "",
    bytes === undefined || bytes === 0 ? "" : `${bytes < 0 ? "−" : "+"}${formatBytes(Math.abs(bytes))}`,
  ].filter((word) => word !== "");
  return html`<tr><td>${after === undefined ? `${step?.step}` : html`<a href="#s${after.step}">${after.step}</a>`}</td><td><code>${clipped(step?.title ?? "", 120)}</code>${words.length === 0 ? undefined : html`<br><small>${words.join(", ")}</small>`}</td><td class="num" data-l="before">${before === undefined ? "–" : formatDuration(stepSeconds(before))}</td><td class="num" data-l="now">${after === undefined ? "–" : formatDuration(stepSeconds(after))}</td><td class="num" data-l="change">${signed(change.seconds)}</td><td>${after && misses.render(after)}</td></tr>`;
}

function signed(seconds: number): string {
  return `${seconds < 0 ? "−" : "+"}${formatDuration(Math.abs(seconds))}`;
}
