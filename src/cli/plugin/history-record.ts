/** Renders a build of the history as `docker buildx history inspect` and `logs` do. */
import type { BuildOrigin, BuildRecord, BuildStatus, BuildStep } from "../../history/build-record.ts";
import { countCached, inputIdentity, nameOfContext } from "../../history/build-record.ts";
import { GoStruct } from "../../templates/values.ts";
import { sanitizeLines } from "../../terminal/terminal-text.ts";
import { visible } from "../../visible.ts";
import { imageFunctions, readTemplate, writeTemplate } from "./format.ts";

type Named = Pick<BuildOrigin, "context" | "dockerfile" | "target" | "bakeTarget">;

/** Returns buildx's name of a build: its directory, its Dockerfile if that has not the default name, and its target. */
export function nameAsInDocker({ target, bakeTarget, ...origin }: Named): string {
  const stage = bakeTarget ?? target;
  return `${nameOfContext(origin)}${stage === null ? "" : ` (${stage})`}`;
}

const statuses: Readonly<Record<BuildStatus, string>> = {
  running: "Running",
  succeeded: "Completed",
  failed: "Error",
  interrupted: "Canceled",
};

export function statusAsInDocker(status: BuildStatus): string {
  return statuses[status];
}

/** Formats a duration as `0.5s` or `1m  1s`. */
export function secondsAsInDocker(seconds: number): string {
  if (seconds < 60) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}m ${String(whole % 60).padStart(2)}s`;
}

/** Formats an age as `3 seconds ago`, as github.com/docker/go-units does. */
export function ageAsInDocker(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [minutes, hours] = [Math.floor(seconds / 60), Math.round(seconds / 3600)];
  const count = (number: number, unit: string) => `${number} ${unit}${number === 1 ? "" : "s"} ago`;
  if (seconds < 1) return "Less than a second ago";
  if (seconds < 60) return count(seconds, "second");
  if (minutes === 1) return "About a minute ago";
  if (minutes < 60) return count(minutes, "minute");
  if (hours === 1) return "About an hour ago";
  if (hours < 48) return count(hours, "hour");
  const days = Math.floor(hours / 24);
  if (days < 14) return count(days, "day");
  if (days < 60) return count(Math.floor(days / 7), "week");
  if (days < 730) return count(Math.floor(days / 30), "month");
  return count(Math.floor(days / 365), "year");
}

/** Returns the fields of `--format json`. */
export function describeRecord(record: BuildRecord): Record<string, unknown> {
  const { id, origin, startedAt, seconds, status, error, inputs } = record;
  const { layers, cached } = countCached(record.steps);
  const failed = record.steps.find(({ outcome }) => outcome === "failed");
  return {
    Name: nameAsInDocker(origin),
    Ref: id,
    Context: origin.context,
    Dockerfile: origin.dockerfile,
    ...(origin.target !== null && { Target: origin.target }),
    ...(origin.platforms.length > 0 && { Platform: origin.platforms }),
    StartedAt: new Date(startedAt).toISOString(),
    CompletedAt: new Date(startedAt + seconds * 1000).toISOString(),
    Duration: Math.round(seconds * 1e9),
    Status: status === "succeeded" ? "completed" : status === "interrupted" ? "canceled" : status,
    ...(error !== null && { Error: { Message: error.message, ...(failed && { Name: failed.title }) } }),
    NumCompletedSteps: layers,
    NumTotalSteps: layers,
    NumCachedSteps: cached,
    ...(origin.buildArgs.length > 0 && {
      BuildArgs: origin.buildArgs.map(({ name, value }) => ({ Name: name, Value: value ?? "" })),
    }),
    ...(inputs.length > 0 && {
      Materials: inputs.map((input) => ({
        URI: input.name,
        Digests: digestOf(input) === "" ? [] : [digestOf(input)],
      })),
    }),
  };
}

/** Formats a record by a template over its fields. */
export function formatRecord(record: BuildRecord, format: string): string {
  const template = readTemplate(format, imageFunctions);
  const described = describeRecord(record);
  const texts = Object.fromEntries(fields.map((name) => [name, String(described[name] ?? "")]));
  const values = Object.entries(texts).map(([name, value]) => ({
    name,
    key: name,
    omitsEmpty: false,
    value,
  }));
  let shown = "";
  writeTemplate(template, new GoStruct("history.inspectOutput", values), imageFunctions, (part) => {
    shown += part;
  });
  return `${shown}\n`;
}

const fields = [
  ...["Name", "Ref", "Context", "Dockerfile", "Target", "StartedAt", "CompletedAt", "Duration", "Status"],
  ...["NumCompletedSteps", "NumTotalSteps", "NumCachedSteps"],
];

/** Renders a record as text. `log`: the output of the failed step. */
export function renderRecord(record: BuildRecord, log: string | undefined): string {
  const { id, origin, startedAt, seconds, error, inputs, status } = record;
  const { layers, cached } = countCached(record.steps);
  const share = layers === 0 ? "" : ` (${Math.floor((cached / layers) * 100)}% cached)`;
  const failed = record.steps.find(({ outcome }) => outcome === "failed");
  const rows = (pairs: readonly (readonly [string, string])[]) =>
    pairs
      .filter(([, value]) => value !== "")
      .map(([label, value]) => `${`${label}:`.padEnd(16)}${visible(value)}\n`)
      .join("");
  const table = (head: readonly [string, string], body: readonly (readonly [string, string])[]) => {
    const width = Math.max(head[0].length, ...body.map(([first]) => visible(first).length)) + 3;
    return [head, ...body]
      .map(([first, second]) => `${visible(first).padEnd(width)}${visible(second)}\n`)
      .join("");
  };
  const output =
    failed === undefined || log === undefined
      ? []
      : sanitizeLines(log.trimEnd(), false).split("\n").slice(-10);
  return [
    rows([
      ...([
        ["Name", nameAsInDocker(origin)],
        ["Ref", id],
        ["Context", origin.context],
      ] as const),
      ...([
        ["Dockerfile", origin.dockerfile],
        ["Target", origin.target ?? ""],
        ["Platforms", origin.platforms.join(", ")],
      ] as const),
    ]),
    rows([
      ["Started", new Date(startedAt).toISOString().slice(0, 19).replace("T", " ")],
      ["Duration", secondsAsInDocker(seconds)],
      ["Status", status === "succeeded" ? "" : statusAsInDocker(status)],
      ["Error", error?.message.split("\n", 1)[0] ?? ""],
      ["Build Steps", `${layers}/${layers}${share}`],
    ]),
    ...(origin.buildArgs.length === 0
      ? []
      : [
          table(
            ["BUILD ARG", "VALUE"],
            origin.buildArgs.map(({ name, value }) => [name, value ?? "***"]),
          ),
        ]),
    ...(inputs.length === 0
      ? []
      : [
          `Materials:\n${table(
            ["URI", "DIGEST"],
            inputs.map((input) => [input.name, digestOf(input)]),
          )}`,
        ]),
    ...(output.length === 0
      ? []
      : [
          `Logs:\n> => ${visible(failed?.title ?? "")}:\n${output.map((line) => `> ${visible(line)}\n`).join("")}`,
        ]),
    `Print build logs: docker buildx history logs ${id}\n`,
  ].join("\n");
}

function digestOf(input: BuildRecord["inputs"][number]): string {
  return input.kind === "image" && input.digest === null ? "" : inputIdentity(input);
}

/** Renders the output of all steps as `--progress=plain` does. */
export function renderLog({ steps }: BuildRecord, read: (step: number) => string | undefined): string {
  const inOrder = steps
    .filter(({ counted }) => counted !== null)
    .toSorted((one, other) => one.start - other.start || one.step - other.step);
  return inOrder
    .map((step, at) => {
      const number = `#${at + 1}`;
      const output = step.output === null ? undefined : read(step.step);
      const lines = output === undefined ? [] : sanitizeLines(output.trimEnd(), false).split("\n");
      return [
        `${number} ${nameOfStep(step)}`,
        ...lines.map((line) => `${number} ${visible(line.replaceAll("\t", "    "))}`),
        `${number} ${endOf(step)}`,
        "",
      ]
        .map((line) => `${line}\n`)
        .join("");
    })
    .join("");
}

/** Returns the name of a step, as in `[2/5] RUN make`. */
export function nameOfStep(step: BuildStep): string {
  return `[${labelOf(step)}] ${visible(step.title)}`;
}

function endOf({ outcome, start, end }: BuildStep): string {
  if (outcome === "cached") return "CACHED";
  if (outcome === "failed") return "ERROR: it did not complete successfully";
  return outcome === "stopped" ? "CANCELED" : `DONE ${((end - start) / 1000).toFixed(1)}s`;
}

/** Returns the number of a step, as in `2/5`, or `build 2/5` with several stages. */
function labelOf({ counted }: BuildStep): string {
  return counted === null ? "" : visible(`${counted.label} ${counted.step}/${counted.steps}`.trimStart());
}
