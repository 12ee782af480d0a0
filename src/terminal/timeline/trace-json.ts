import type { StageLabel } from "../../builder/step-place.ts";
import { jsonText } from "../json-text.ts";
import { stageName } from "../step-row.ts";
import { blockerOf, findChain, findWaits, lastOf, type RecordedBuild, type Span } from "./spans.ts";

/**
 * Renders a build in the Trace Event Format, for Perfetto and Chrome (JSON object format; times are microseconds since the
 * build's start). The first thread has the requests and activities that followed one another from the beginning to the end.
 * Stages are threads, whose steps contain their activities. Requests and the service's operations have as many threads as ran at
 * once. An arrow leads from a stage's end to the step that copies from it, and to each request from what it waited for.
 */
export function renderTrace(build: RecordedBuild, labels: { command: string; service: string }): string {
  const events: object[] = [];
  const microseconds = (time: number) => Math.round((time - build.start) * 1000);
  let thread = 0;
  /** The thread of each span. */
  const threads = new Map<Span, number>();
  const waits = findWaits(build);
  const steps = new Map(build.steps.map((step) => [step as Span, blockerOf(step, build.steps)]));

  function argumentsOf(span: Span): object {
    const waitedFor = (waits.get(span) ?? steps.get(span))?.name;
    return waitedFor === undefined ? span.details : { ...span.details, waitedFor };
  }

  function addProcess(pid: number, name: string): void {
    const metadata = { ph: "M", ts: 0, pid, tid: 0 };
    events.push({ ...metadata, name: "process_name", args: { name } });
    events.push({ ...metadata, name: "process_sort_index", args: { sort_index: pid } });
  }

  function addThreads(
    pid: number,
    name: string,
    category: string,
    spans: readonly Span[],
    nests: boolean,
  ): void {
    for (const [index, lane] of assignLanes(spans, { nests }).entries()) {
      thread += 1;
      const metadata = { ph: "M", ts: 0, pid, tid: thread };
      const label = index === 0 ? name : `${name} (${index + 1})`;
      events.push({ ...metadata, name: "thread_name", args: { name: label } });
      events.push({ ...metadata, name: "thread_sort_index", args: { sort_index: thread } });
      for (const span of lane) {
        if (category !== "chain") threads.set(span, thread);
        const ts = microseconds(span.start);
        const dur = Math.max(0, microseconds(span.end) - ts);
        const cat = "needs" in span ? "step" : category;
        events.push({ name: span.name, cat, ph: "X", ts, dur, pid, tid: thread, args: argumentsOf(span) });
      }
    }
  }

  let arrows = 0;
  function addArrow(labels: { name: string; cat: string }, source: Span, target: Span): void {
    arrows += 1;
    const arrow = { ...labels, pid: pids.bough, id: arrows };
    const from = Math.max(microseconds(source.start), microseconds(source.end) - 1);
    events.push({ ...arrow, ph: "s", ts: from, tid: threads.get(source) });
    events.push({ ...arrow, ph: "f", bp: "e", ts: microseconds(target.start), tid: threads.get(target) });
  }

  function addArrows(): void {
    for (const step of build.steps) {
      for (const index of step.needs) {
        const source = lastOf(
          build.steps.filter(({ stage, end }) => stage?.index === index && end <= step.start),
        );
        if (source !== undefined) addArrow({ name: "needs", cat: "stage" }, source, step);
      }
    }
    for (const [request, source] of waits) addArrow({ name: "waited for", cat: "wait" }, source, request);
  }

  addProcess(pids.bough, labels.command);
  addProcess(pids.service, labels.service);
  addThreads(pids.bough, "one after the other", "chain", findChain(build), false);
  const stages = Map.groupBy([...build.steps, ...build.activities], ({ stage }) => stage?.index ?? -1);
  for (const [, spans] of [...stages].sort(([one], [other]) => one - other))
    addThreads(pids.bough, threadName(spans[0]?.stage ?? null), "activity", spans, true);
  addThreads(pids.bough, "requests", "request", build.requests, false);
  addThreads(pids.service, "operations", "service", build.served, false);
  addArrows();
  return `${jsonText({ traceEvents: events, displayTimeUnit: "ms", otherData: { startedAt: new Date(build.start).toISOString(), ...labels } })}\n`;
}

const pids = { bough: 1, service: 2 };

function threadName(stage: StageLabel | null): string {
  return stage === null ? "before the first FROM" : stageName(stage);
}

/**
 * Distributes spans over as few rows as possible so that none in a row overlap. With `nests` one may also be inside another.
 */
export function assignLanes<Item extends Pick<Span, "start" | "end">>(
  spans: readonly Item[],
  { nests }: { nests: boolean },
): Item[][] {
  const ordered = [...spans].sort((one, other) => one.start - other.start || other.end - one.end);
  /** The spans of each row, and the ends of its open spans, the innermost last. */
  const lanes: { items: Item[]; ends: number[] }[] = [];
  for (const span of ordered) {
    const fits = ({ ends }: { ends: number[] }) => {
      while (ends.length > 0 && (ends.at(-1) ?? 0) <= span.start) ends.pop();
      return ends.length === 0 || (nests && span.end <= (ends.at(-1) ?? 0));
    };
    let lane = lanes.find(fits);
    if (lane === undefined) {
      lane = { items: [], ends: [] };
      lanes.push(lane);
    }
    lane.items.push(span);
    lane.ends.push(span.end);
  }
  return lanes.map(({ items }) => items);
}
