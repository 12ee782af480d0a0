import { type BuildRecord, inputIdentity } from "../build-record.ts";
import { clipped, html, type Markup } from "./markup.ts";

/** Renders a build's inputs and settings, without secrets, and its warnings. */
export function renderInputs({ origin, inputs, warnings, result }: BuildRecord): Markup {
  const facts: [name: string, value: Markup | string | null | undefined][] = [
    ["Context", code(origin.context)],
    ["Dockerfile", code(origin.dockerfile)],
    ["Target", origin.bakeTarget ?? origin.target],
    ["Platforms", origin.platforms.join(", ")],
    ["Cache", origin.usesCache ? undefined : "not used (--no-cache)"],
    ["Lock", origin.lock === null ? undefined : code(origin.lock)],
    ["Service", origin.service],
    ["bough", origin.version],
    ["Image", result === null ? undefined : code(result.image)],
    ["Tags", result === null ? undefined : result.tags.join(", ")],
    ...(result?.exported ?? []).map((each): [string, Markup] => [
      "Written to",
      html`${code(each.destination)} ${code(each.digest)}`,
    ]),
  ];
  const shown = facts.filter(([, value]) => value);
  return html`<section class="inputs" aria-labelledby="inputs"><h2 id="inputs">What it was made from</h2>
<dl class="facts">${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${value ?? ""}</dd>`)}</dl>
${inputs.length === 0 ? undefined : html`<div class="wide"><table><thead><tr><th scope="col">Kind</th><th scope="col">Input</th><th scope="col">Is</th></tr></thead><tbody>${inputs.map((input) => html`<tr><td>${kindWords[input.kind]}</td><td>${code(input.name)}</td><td>${code(inputIdentity(input))}</td></tr>`)}</tbody></table></div>`}
${origin.buildArgs.length === 0 ? undefined : html`<div class="wide"><table><thead><tr><th scope="col">Build argument</th><th scope="col">Value</th></tr></thead><tbody>${origin.buildArgs.map(({ name, value }) => html`<tr><td>${code(name)}</td><td>${value === null ? html`<i>secret, not recorded</i>` : code(clipped(value, 500))}</td></tr>`)}</tbody></table></div>`}
${warnings.length === 0 ? undefined : html`<h3>Warnings</h3><ul>${warnings.slice(0, maxWarnings).map(({ message, line }) => html`<li>${line === null ? undefined : `line ${line}: `}${clipped(message, 500)}</li>`)}</ul>${warnings.length > maxWarnings ? html`<p class="more">and ${warnings.length - maxWarnings} more</p>` : undefined}`}</section>`;
}

const maxWarnings = 40;

const kindWords = { image: "image", url: "address", repository: "repository" } as const;

function code(text: string): Markup {
  return html`<code>${text}</code>`;
}
