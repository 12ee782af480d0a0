import {
  type BuildInput,
  type BuildRecord,
  type BuildStep,
  countCached,
  inOrder,
  inputIdentity,
} from "../../history/build-record.ts";
import { type CriticalPath, criticalPathOf } from "../../history/critical-path.ts";
import { renderExplanation } from "../../terminal/explanation.ts";
import { formatBytes, formatCount, formatDuration } from "../../terminal/quantity.ts";
import { stageName } from "../../terminal/step-row.ts";
import {
  type Cell,
  durationCell,
  formatTime,
  renderTable,
  sizeCell,
  type TableStyle,
} from "../../terminal/table.ts";
import { visible, visibleLines } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { buildArgument, requireBuild, requireRecord, withHistory, withSizes } from "./find-build.ts";

export const show = command({
  name: "show",
  description: "Show a build: its steps with their times, why they were not cached, and what it was made of.",
  args: { build: buildArgument },
  run: showBuild,
  examples: [
    ["history show", "the last build"],
    ["history show 3kx9", "another one, by its ID's first characters"],
    ["history show ^1 -f json", "the one before the last, with everything that is recorded"],
  ],
  agentNote:
    "`steps[].reason` of -f json says why a step was not cached; `bough history logs BUILD STEP` has a step's output.",
});

async function showBuild(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  const record = await withHistory(runtime, (builds, history) =>
    withSizes(requireRecord(requireBuild(values.positionals[0], builds), history), builds, history),
  );
  printResult(invocation, {
    id: record.id,
    json: describeBuild(record),
    table: (style) => renderBuild(record, style),
  });
}

/** Returns a record for programs, with rendered reasons and the critical path. */
function describeBuild(record: BuildRecord): Record<string, unknown> {
  const { startedAt, origin, steps, ...others } = record;
  const path = criticalPathOf(record);
  const critical = new Set(path.steps);
  return {
    ...others,
    startedAt: new Date(startedAt).toISOString(),
    ...origin,
    cached: countCached(steps),
    steps: steps.map((step) => ({
      ...step,
      seconds: Math.round(step.end - step.start) / 1000,
      because: step.reason && renderExplanation(step.reason),
      isCritical: critical.has(step),
      waitedFor: path.waitedFor(step)?.step ?? null,
    })),
  };
}

function renderBuild(record: BuildRecord, style: TableStyle): string {
  const properties = propertiesOf(record, style);
  const width = Math.max(...properties.map(([name]) => name.length));
  const about = properties.map(([name, value]) => `${name.padEnd(width)}  ${visible(value)}\n`).join("");
  const error = record.error === null ? "" : `\n${visibleLines(errorText(record.error))}\n`;
  if (record.steps.length === 0) return about + error;
  const path = criticalPathOf(record);
  return `${about}\n${renderSteps(record, path, style)}${describePath(record, path)}${error}`;
}

function errorText({ message, hint }: NonNullable<BuildRecord["error"]>): string {
  return hint === null ? message : `${message}\n${hint}`;
}

function propertiesOf(
  { id, status, startedAt, seconds, origin, inputs, result, steps }: BuildRecord,
  { now }: TableStyle,
) {
  const { layers, cached } = countCached(steps);
  const share = layers === 0 ? "" : `, ${cached} of ${formatCount(layers, "layer")} cached`;
  const words = origin.buildArgs.map(({ name, value }) => `${name}=${value ?? "***"}`);
  const properties: [name: string, value: string | null][] = [
    ["BUILD", id],
    ["NAME", origin.name],
    ["STATUS", `${status} in ${formatDuration(seconds)}${share}`],
    ["STARTED", formatTime(startedAt, now)],
    ["BY", `bough ${origin.version}, ${origin.door}${origin.isCi ? ", in a pipeline" : ""}`],
    ["CONTEXT", origin.context],
    ["DOCKERFILE", origin.dockerfile],
    ["TARGET", origin.bakeTarget ?? origin.target],
    ["PLATFORMS", origin.platforms.join(", ")],
    ["ARGUMENTS", words.join(" ")],
    ["LOCK", origin.lock],
    ["SERVICE", origin.service],
    ...inputs.map((input, at): [string, string] => [at === 0 ? "INPUTS" : "", inputText(input)]),
    ["IMAGE", result?.image ?? null],
    ["TAGS", result?.tags.join(" ") ?? null],
    ...(result?.exported ?? []).map((each): [string, string] => [
      "WRITTEN",
      `${each.destination} ${each.digest}`,
    ]),
  ];
  return properties.flatMap(([name, value]): [string, string][] => (value ? [[name, value]] : []));
}

/** Returns an input on one line, with its digest or commit. */
function inputText(input: BuildInput): string {
  return `${input.name} (${input.kind === "repository" ? "commit " : ""}${inputIdentity(input)})`;
}

function renderSteps(record: BuildRecord, path: CriticalPath, style: TableStyle): string {
  const critical = new Set(path.steps);
  const hasStages = record.steps.some(({ inStage }) => inStage !== null);
  const hasSizes = record.steps.some(({ addedBytes }) => addedBytes !== null);
  const row = (step: BuildStep): Cell[] => [
    String(step.step),
    ...(hasStages ? [step.stage && stageName(step.stage)] : []),
    durationCell((step.end - step.start) / 1000),
    critical.has(step) ? "*" : "",
    step.outcome === "done" ? null : step.outcome,
    ...(hasSizes ? [sizeCell(step.addedBytes)] : []),
    step.title,
    step.reason && renderExplanation(step.reason),
  ];
  const header = [
    "STEP",
    ...(hasStages ? ["STAGE"] : []),
    ...["TIME", "", "RESULT"],
    ...(hasSizes ? ["SIZE"] : []),
    ...["INSTRUCTION", "WHY NOT CACHED"],
  ];
  return renderTable({ header, rows: inOrder(record.steps).map(row) }, style);
}

/** Returns a sentence about the critical path, whose steps have a `*`. */
function describePath({ seconds: total }: BuildRecord, { steps, slowest }: CriticalPath): string {
  if (slowest === undefined || total <= 0) return "";
  const seconds = (slowest.end - slowest.start) / 1000;
  const share = Math.min(100, Math.round((seconds / total) * 100));
  return `\nThe build took as long as its ${formatCount(steps.length, "step")} marked *. The slowest is step ${slowest.step}: ${formatDuration(seconds)}, ${share}% of the time.\n`;
}

/** Formats a change of bytes with its sign. */
export function signedBytes(bytes: number): string {
  return `${bytes < 0 ? "-" : "+"}${formatBytes(Math.abs(bytes))}`;
}
