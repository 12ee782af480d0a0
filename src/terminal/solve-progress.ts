import type { BuildEvent, StepEvent } from "../builder/events.ts";
import type { StepPlace } from "../builder/step-place.ts";
import type { Clock } from "../clock.ts";
import { commandLineWords, render, type WordsOf } from "../messages/wording.ts";
import { sha256Of } from "../sha256.ts";
import { failureOf } from "./failure.ts";
import { jsonText } from "./json-text.ts";
import { createReportedLog, type LogLevel } from "./log.ts";
import type { Progress } from "./progress.ts";

/** What BuildKit calls a vertex: something that is done, with its beginning and its end. */
interface Vertex {
  digest: string;
  inputs?: string[];
  name: string;
  started?: string;
  completed?: string;
  cached?: true;
  error?: string;
}

type Warned = Pick<Extract<StepEvent, { type: "warning" }>, "message" | "line">;

interface SolveProgressOptions {
  write: (text: string) => void;
  clock: Pick<Clock, "now">;
  /** The level of messages that are not about a step. */
  logLevel: LogLevel;
  /** What messages call options and commands. */
  wordsOf?: WordsOf | undefined;
}

/** The interval for repeated amounts. The one at the end has the total anyway. */
const amountsEveryMilliseconds = 200;

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
  /** By target: the vertexes that belong to no step. */
  const contexts = new Map<string, Vertex>();
  const definitions = new Map<string, Vertex>();
  const exports = new Map<string, Vertex>();
  const amountsAt = new Map<string, number>();

  const now = () => new Date(clock.now()).toISOString();
  const line = (fields: object) => write(`${jsonText(fields)}\n`);
  const show = (vertex: Vertex, change: Partial<Vertex> = {}) =>
    line({ vertexes: [Object.assign(vertex, change)] });
  const begin = (name: string, key: string): Vertex => {
    const vertex: Vertex = { digest: digestOf(key), name, started: now() };
    show(vertex);
    return vertex;
  };
  const end = (vertex: Vertex, change: Partial<Vertex> = {}) =>
    show(vertex, { ...change, completed: vertex.completed ?? now() });
  const tell = (
    vertex: Vertex,
    id: string,
    amount: { current?: number; total?: number | undefined; isDone?: boolean } = {},
  ) => {
    const { current = 0, total, isDone = true } = amount;
    const key = `${vertex.digest} ${id}`;
    if (!isDone && clock.now() - (amountsAt.get(key) ?? 0) < amountsEveryMilliseconds) return;
    amountsAt.set(key, clock.now());
    const time = now();
    const started = vertex.started ?? time;
    const status = { id, vertex: vertex.digest, current, timestamp: time, started };
    line({
      statuses: [{ ...status, ...(total !== undefined && { total }), ...(isDone && { completed: time }) }],
    });
  };
  /** Programs that draw the stream show warnings of known vertexes only, without their place: it is part of the text, as in BuildKit. */
  const warn = ({ message, line: number }: Warned, target = "") => {
    const { digest } = definitions.getOrInsertComputed(target, () => {
      const vertex = begin(`[${prefixed(target, "internal")}] load build definition`, `definition ${target}`);
      end(vertex);
      return vertex;
    });
    const said = render(message, wordsOf) ?? "";
    const text = number === undefined ? said : `${said} (line ${number})`;
    const range = number !== undefined && { range: [{ start: { line: number }, end: { line: number } }] };
    line({
      warnings: [{ vertex: digest, level: 1, short: Buffer.from(text).toString("base64"), ...range }],
    });
  };
  const contextOf = (target = ""): Vertex =>
    contexts.getOrInsertComputed(target, () =>
      begin(`[${prefixed(target, "internal")}] load build context`, `context ${target}`),
    );
  const exportOf = (target = ""): Vertex =>
    exports.getOrInsertComputed(target, () =>
      begin(`${target === "" ? "" : `[${target}] `}exporting to image`, `export ${target}`),
    );

  function showStep(event: Extract<StepEvent, { type: "step" }> & StepPlace & { target?: string }): void {
    const { target, stage, step, instruction, counted } = event;
    if (counted === undefined || stage === null) return;
    const width = String(counted.steps).length;
    const place = prefixed(target, counted.label, `${String(counted.step).padStart(width)}/${counted.steps}`);
    const digest = digestOf(JSON.stringify([target, step, instruction.title]));
    const stageKey = `${target} ${stage.index}`;
    const below = latest.get(stageKey);
    latest.set(stageKey, digest);
    const vertex: Vertex = {
      digest,
      ...(below !== undefined && { inputs: [below] }),
      name: `[${place}] ${instruction.name === "FROM" ? instruction.title.replace(/\s+AS\s+\S+$/i, "") : instruction.title}`,
      started: now(),
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
        const data = Buffer.from(text).toString("base64");
        const number = stream === "stdout" ? 1 : 2;
        line({ logs: [{ vertex: vertex.digest, stream: number, data, timestamp: now() }] });
        break;
      }
      case "warning":
        warn(event, target);
        break;
      case "importing":
        tell(vertex, `resolve ${event.reference}`);
        break;
      case "repository":
        tell(vertex, `${event.url} ${event.commit}`);
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
      case "download-progress":
        tell(vertex, "transferring", { current: event.bytes, total: event.total, isDone: false });
        break;
      case "downloaded":
        tell(vertex, "transferring", { current: event.bytes, total: event.bytes });
        break;
      case "upload-progress":
        tell(vertex, "sending files", { current: event.sentBytes, isDone: false });
        break;
      case "uploaded":
        tell(vertex, "sending files", { current: event.sentBytes, total: event.sentBytes });
        break;
      default:
        // The others are bough's own.
        break;
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
      for (const vertex of [...contexts.values(), ...exports.values()])
        if (vertex.completed === undefined) end(vertex);
      // After an interruption no event ends them.
      for (const vertex of steps.values())
        if (vertex.completed === undefined && !failed.has(vertex)) end(vertex, { error: cancelled });
    },
  };
}

/** BuildKit's own words. */
const cancelled = "context canceled";

function keyOf({ target, step }: Pick<BuildEvent, "target" | "step">): string {
  return `${target} ${step}`;
}

function prefixed(...parts: (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== "").join(" ");
}

function digestOf(text: string): string {
  return `sha256:${sha256Of(text)}`;
}
