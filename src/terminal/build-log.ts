import type { BuildEvent } from "../builder/events.ts";
import type { BuildResult } from "../builder/result.ts";
import type { SharedFrom } from "../builder/state/layer.ts";
import { changesImage, describeExcluded, describeMissing } from "../builder/state/warnings.ts";
import { type Message, wording } from "../messages/wording.ts";
import { renderExplanation, renderShared } from "./explanation.ts";
import type { LogLevel } from "./log.ts";
import { describeGone, formatAge, formatBytes, formatCount, formatDuration } from "./quantity.ts";
import { countSteps } from "./step-row.ts";

export interface LogLine {
  level: LogLevel;
  text: Message;
  /** True if it is shown at every log level. */
  isAlways?: boolean;
}

/**
 * Renders an event of a build as log lines, in forms that programs may parse. Output of commands is shown separately. `label`,
 * such as `[build 2/5] `, precedes lines of events without a line number. `running`: the number of running steps. If several builds
 * run at once, the name of the event's precedes it.
 */
export function renderBuildEvent(event: BuildEvent, label = "", running = 0): LogLine[] {
  const lines = renderUnlabelled(event, running);
  const hasLine = "line" in event && event.line !== undefined;
  const named = event.target === undefined ? "" : `${event.target}: `;
  const prefix = named === "" && hasLine ? "" : label || named;
  return prefix === "" ? lines : lines.map((line) => ({ ...line, text: wording`${prefix}${line.text}` }));
}

function renderUnlabelled(event: BuildEvent, running: number): LogLine[] {
  switch (event.type) {
    case "step": {
      const { name, line } = event.instruction;
      return [{ level: "debug", text: `step ${event.step}/${event.steps}: ${name} (line ${line})` }];
    }
    case "warning":
      return [
        {
          level: "warn",
          text: event.line === undefined ? event.message : wording`line ${event.line}: ${event.message}`,
          isAlways: changesImage(event),
        },
      ];
    case "resolved":
      return info(`FROM ${event.reference} is image ${event.image}`);
    case "importing":
      return info(`importing ${event.reference} from ${event.url}`);
    case "excluded":
      return info(`line ${event.line}: ${describeExcluded(event.paths)}`);
    case "large-context":
      return [{ level: "warn", text: describeLargeContext(event) }];
    case "cached":
      return info(`cached layer:${event.layer.slice(0, 12)} ${event.title}${describeScope(event.from)}`);
    case "explained": {
      const { title, line, explanation, shared } = event;
      const text = `not cached: line ${line}, ${title}: ${renderExplanation(explanation)}`;
      return info(shared === undefined ? text : `${text}; ${renderShared(shared)}`);
    }
    case "staged":
      return info(`staged ${formatCount(event.files, "file")} (${formatBytes(event.bytes)}) ${event.title}`);
    case "downloading":
      return info(`downloading ${event.url}`);
    case "downloaded":
      return info(`downloaded ${event.url} (${formatBytes(event.bytes)}, sha256:${event.sha256})`);
    case "url-cache-hit":
      return info(`URL cache hit (HEAD validators match) ${event.url}`);
    case "repository": {
      const { url, commit, ref, cached } = event;
      const from = ref === undefined ? "" : ` (${ref})`;
      return info(
        cached ? `git cache hit (${commit} is known) ${url}` : `fetching ${url} at ${commit}${from}`,
      );
    }
    case "uploading":
      return [
        {
          level: "debug",
          text: `uploading ${formatCount(event.files, "file")} (${formatBytes(event.bytes)})`,
        },
      ];
    case "uploaded": {
      const reused = event.reused === 0 ? "" : `, ${event.reused} already there`;
      return info(
        `uploaded ${formatCount(event.files, "file")} (${formatBytes(event.sentBytes)} sent${reused})`,
      );
    }
    case "forgotten-files":
      return [
        {
          level: "warn",
          text: `${describeGone(event.files)}: sending again`,
        },
      ];
    case "forgotten-layer": {
      const layer = `layer:${event.layer.slice(0, 12)}`;
      return [
        {
          level: "warn",
          text: `image ${event.image} of ${layer} is gone: building it again`,
        },
      ];
    }
    case "spawned":
      return info(`${nameOf(event.title)} spawned op=${event.operation} ${event.title}`);
    case "resumed":
      return info(`${nameOf(event.title)} resumed op=${event.operation} ${event.title}`);
    case "output":
    case "ran":
    case "step-end":
    case "import-progress":
    case "hashing":
    case "hashed":
    case "download-progress":
    case "upload-progress":
    case "timings":
      return [];
    case "step-failed": {
      // Without other running steps, the error itself follows at once.
      const isShown = running > 0 && event.abandoned !== true;
      return isShown ? [{ level: "warn", text: `failed: ${event.title}` }] : [];
    }
    case "cancelling": {
      const why = event.abandoned === true ? "another stage has failed" : "interrupted";
      return [{ level: "warn", text: `${why}: cancelling operation ${event.operation}` }];
    }
    case "cancelled":
      return event.confirmed
        ? [{ level: "warn", text: `operation ${event.operation} is cancelled` }]
        : [
            {
              level: "error",
              text: `the end of operation ${event.operation} is not confirmed: it may still run`,
            },
          ];
    case "tagged":
      return info(`tagged ${event.image} as ${event.tag}${event.service ? ` on ${event.service}` : ""}`);
    case "finished":
      return [...info(summarize(event.result, { isBrief: false })), ...describeMissingParts(event.result)];
  }
}

function describeScope(from: SharedFrom | undefined): string {
  return from === undefined ? "" : ` (${from.scope}, ${formatAge(from.ageSeconds * 1000)})`;
}

/** `9 steps, 4 of 5 layers cached, 12 files uploaded (1.2 MB), in 12.3 s`; if it is brief, without uploads of no file. */
export function summarize(
  { steps, uploaded, seconds }: BuildResult,
  { isBrief }: { isBrief: boolean },
): string {
  // A cached FROM saves no work worth counting.
  const layers = steps.filter((step) => step.layer !== null && !/^FROM\s/i.test(step.instruction));
  const cached = layers.filter((step) => step.cached === true).length;
  const files = `${formatCount(uploaded.files, "file")} uploaded`;
  const sent = uploaded.files === 0 ? files : `${files} (${formatBytes(uploaded.bytes)})`;
  return [
    formatCount(countSteps(steps), "step"),
    `${cached} of ${formatCount(layers.length, "layer")} cached`,
    ...(isBrief && uploaded.files === 0 ? [] : [sent]),
    `in ${formatDuration(seconds)}`,
  ].join(", ");
}

/** Returns the last line of a build whose image is incomplete, so that nobody ships it by mistake. */
export function describeMissingParts({ missing }: BuildResult): LogLine[] {
  if (missing.length === 0) return [];
  const text = wording`This image lacks ${describeMissing(missing)}. ${{ command: "build", options: [{ option: "docker" }] }} builds it as Docker does; BOUGH_DOCKER=1 makes that the default.`;
  return [{ level: "warn", text, isAlways: true }];
}

function describeLargeContext({
  line,
  title,
  context,
  files,
  bytes,
  largest,
}: Extract<BuildEvent, { type: "large-context" }>): string {
  const amount = (of: { files: number; bytes: number }) =>
    `${formatBytes(of.bytes)} in ${formatCount(of.files, "file")}`;
  const width = Math.max(...largest.map(({ rule }) => Bun.stringWidth(rule)));
  return [
    `line ${line}: ${title} takes ${amount({ files, bytes })} from the build context${context === undefined ? "" : ` ${context}`}.`,
    "Its largest paths, as lines for .dockerignore that would leave them out:",
    ...largest.map((path) => {
      const padding = " ".repeat(width - Bun.stringWidth(path.rule));
      return `  ${path.rule}${padding}  (${amount(path)})`;
    }),
  ].join("\n");
}

function info(text: string): LogLine[] {
  return [{ level: "info", text }];
}

/** Returns the source of a command: its step's instruction, or bough, whose own commands have a title in parentheses. */
function nameOf(title: string): string {
  if (title.startsWith("(")) return "bough";
  const [name = ""] = title.split(" ");
  return ["ADD", "COPY", "FROM", "WORKDIR"].includes(name) ? name : "RUN";
}
