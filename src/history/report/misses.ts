import { renderExplanation } from "../../terminal/explanation.ts";
import { type BuildStep, inOrder } from "../build-record.ts";
import { html, type Markup } from "./markup.ts";

/** The causes of cache misses: few steps have a cause of their own, the others follow from one of these. */
export interface Misses {
  /** Steps with a cause of their own, in the order of the Dockerfile. */
  causes: readonly BuildStep[];
  /** Returns the steps that were made again only because this one was. */
  following(cause: BuildStep): readonly BuildStep[];
  /** Renders the final cause of a step's miss. */
  render(step: BuildStep): Markup | undefined;
}

export function findMisses(steps: readonly BuildStep[]): Misses {
  const missed = inOrder(steps).filter(({ reason }) => reason !== null);
  const madeBy = new Map(
    missed.flatMap((step) => (step.layer === null ? [] : [[step.layer, step] as const])),
  );
  const parentOf = (step: BuildStep): BuildStep | undefined =>
    step.reason?.reason === "parent" ? madeBy.get(`layer:${step.reason.now}`) : undefined;
  const rootOf = (step: BuildStep): BuildStep => {
    const seen = new Set([step]);
    let root = step;
    for (let next = parentOf(step); next !== undefined && !seen.has(next); next = parentOf(next)) {
      seen.add(next);
      root = next;
    }
    return root;
  };
  const roots = new Map(missed.map((step) => [step, rootOf(step)]));
  const groups = Map.groupBy(missed, (step) => roots.get(step) ?? step);
  return {
    causes: [...groups.keys()],
    following: (cause) => (groups.get(cause) ?? []).filter((step) => step !== cause),
    render(step) {
      if (step.reason === null) return undefined;
      const root = roots.get(step) ?? step;
      if (root === step || root.reason === null) return html`${renderExplanation(step.reason)}`;
      const why = steps.length > maxExplained ? undefined : html`: ${renderExplanation(root.reason)}`;
      return html`it builds on <a href="#s${root.step}">step ${root.step}</a>, which was made again${why}`;
    },
  };
}

/** If there are more steps, the page has a cause only once, at the step that has it. */
const maxExplained = 200;

/** Links to steps, or counts many. */
export function renderLinks(steps: readonly BuildStep[]): Markup {
  if (steps.length > maxLinks) return html`${steps.length} steps`;
  return html`${steps.length === 1 ? "step" : "steps"} ${steps.map(
    ({ step }, at) =>
      html`${at === 0 ? "" : at === steps.length - 1 ? " and " : ", "}<a href="#s${step}">${step}</a>`,
  )}`;
}

const maxLinks = 12;
