import type { BuildEvent, StepEvent } from "../builder/events.ts";
import type { StepPlace } from "../builder/step-place.ts";
import type { Clock } from "../clock.ts";
import { commandLineWords, type WordsOf } from "../messages/wording.ts";
import { failureOf } from "./failure.ts";
import { createReportedLog, type LogLevel } from "./log.ts";
import type { Progress } from "./progress.ts";
import {
  createVertexes,
  type ProgressAmount,
  prefixed,
  type Vertex,
  vertexDigest,
} from "./solve-vertexes.ts";

interface SolveProgressOptions {
  write: (text: string) => void;
  clock: Pick<Clock, "now">;
  /** The level of messages that are not about a step. */
  logLevel: LogLevel;
  /** The words for options and commands in messages. */
  wordsOf?: WordsOf | undefined;
}

/**
 * Writes a build as docker buildx does with `--progress rawjson`: each line is a `SolveStatus` of BuildKit as JSON, with `vertexes`,
 * their `statuses`, their `logs` (in base64) and `warnings`. `docker compose build` reads that. Only what BuildKit shows has a vertex:
 * images of FROM, what makes a layer, and the export. The build's error is no part of it, as there.
 */
export function createSolveProgress({
  write,
  clock,
  logLevel,
  wordsOf = commandLineWords,
}: SolveProgressOptions): Progress {
  const steps = new Map<string, Vertex>();
  /** The latest vertex of each stage, from which its next one is made. */
  const latest = new Map<string, string>();
  /** Steps that have failed, or were ended because another one has: their ends wait for the reason. */
  const failed = new Map<Vertex, { abandoned: boolean }>();
  const written = createVertexes({ write, clock, wordsOf });
  const { show, end, tell, warn, contextOf, exportOf } = written;

  function showStep(event: Extract<StepEvent, { type: "step" }> & StepPlace & { target?: string }): void {
    const { target, stage, step, instruction, counted } = event;
    if (counted === undefined || stage === null) return;
    const width = String(counted.steps).length;
    const place = prefixed(target, counted.label, `${String(counted.step).padStart(width)}/${counted.steps}`);
    const digest = vertexDigest(JSON.stringify([target, step, instruction.title]));
    const stageKey = `${target} ${stage.index}`;
    const below = latest.get(stageKey);
    latest.set(stageKey, digest);
    const vertex: Vertex = {
      digest,
      ...(below !== undefined && { inputs: [below] }),
      name: `[${place}] ${instruction.name === "FROM" ? instruction.title.replace(/\s+AS\s+\S+$/i, "") : instruction.title}`,
      started: written.now(),
    };
    steps.set(keyOf(event), vertex);
    show(vertex);
  }

  /** Shows what happens in a step that has a vertex. */
  function showInStep(event: StepEvent & StepPlace, vertex: Vertex, target: string | undefined): void {
    switch (event.type) {
      case "step-end":
        end(vertex, event.record.cached === true ? { cached: true } : {});
        break;
      case "step-failed":
        failed.set(vertex, { abandoned: event.abandoned === true });
        break;
      case "output": {
        const { stream, text } = event.chunk;
        written.log(vertex, stream, text);
        break;
      }
      case "warning":
        warn(event, target);
        break;
      case "hashing":
        contextOf(target);
        break;
      case "hashed":
        tell(contextOf(target), "transferring context:", { current: event.bytes, isDone: false });
        break;
      case "staged": {
        const context = contextOf(target);
        if (context.completed !== undefined) break;
        tell(context, "transferring context:", { current: event.bytes });
        end(context);
        break;
      }
      default: {
        const status = statusOf(event);
        if (status !== undefined) tell(vertex, ...status);
      }
    }
  }

  return {
    log: createReportedLog(
      logLevel,
      (level, message) => {
        if (level === "warn" || level === "error") warn({ message, line: undefined });
      },
      wordsOf,
    ),
    emit(event) {
      const { target } = event;
      if (event.type === "step") {
        showStep(event);
        return;
      }
      if (event.step !== undefined) {
        const vertex = steps.get(keyOf(event));
        if (vertex !== undefined) showInStep(event, vertex, target);
        else if (event.type === "warning") warn(event, target);
        return;
      }
      switch (event.type) {
        case "warning":
          warn(event, target);
          return;
        case "tagged":
          tell(exportOf(target), `naming to ${event.tag}`);
          return;
        case "finished": {
          const vertex = exportOf(target);
          tell(vertex, `writing image ${event.result.image}`);
          for (const { destination } of event.result.exported) tell(vertex, `writing ${destination}`);
          end(vertex);
          return;
        }
        case "forgotten-layer":
        case "timings":
          return;
      }
    },
    fail(error) {
      const [message = ""] = failureOf(error).message.split("\n");
      for (const [vertex, { abandoned }] of failed) end(vertex, { error: abandoned ? cancelled : message });
      failed.clear();
      return false;
    },
    close() {
      written.close();
      // After an interruption no event ends them.
      for (const vertex of steps.values())
        if (vertex.completed === undefined && !failed.has(vertex)) end(vertex, { error: cancelled });
    },
  };
}

/** BuildKit's own texts. */
const cancelled = "context canceled";

/** Returns BuildKit's text for a step's event; `undefined` for events that only bough has. */
function statusOf(event: StepEvent): [id: string, amount?: ProgressAmount] | undefined {
  switch (event.type) {
    case "importing":
      return [`resolve ${event.reference}`];
    case "repository":
      return [`${event.url} ${event.commit}`];
    case "download-progress":
      return ["transferring", { current: event.bytes, total: event.total, isDone: false }];
    case "downloaded":
      return ["transferring", { current: event.bytes, total: event.bytes }];
    case "upload-progress":
      return ["sending files", { current: event.sentBytes, isDone: false }];
    case "uploaded":
      return ["sending files", { current: event.sentBytes, total: event.sentBytes }];
    default:
      return undefined;
  }
}

function keyOf({ target, step }: Pick<BuildEvent, "target" | "step">): string {
  return `${target} ${step}`;
}
