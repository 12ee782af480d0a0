/** BuildKit's vertexes, with their statuses, logs and warnings: each line is a `SolveStatus` as JSON. */
import type { StepEvent } from "../builder/events.ts";
import type { Clock } from "../clock.ts";
import { render, type WordsOf } from "../messages/wording.ts";
import { sha256Of } from "../sha256.ts";
import { jsonText } from "./json-text.ts";

/** A vertex of BuildKit: a piece of work, with its start and its end. */
export interface Vertex {
  digest: string;
  inputs?: string[];
  name: string;
  started?: string;
  completed?: string;
  cached?: true;
  error?: string;
}

type Warned = Pick<Extract<StepEvent, { type: "warning" }>, "message" | "line">;

/** The interval for repeated amounts. The one at the end has the total anyway. */
const amountsEveryMilliseconds = 200;

/** The progress of some work. */
export interface ProgressAmount {
  current?: number;
  total?: number | undefined;
  isDone?: boolean;
}

interface VertexOptions {
  write: (text: string) => void;
  clock: Pick<Clock, "now">;
  /** The words for options and commands in messages. */
  wordsOf: WordsOf;
}

export function createVertexes({ write, clock, wordsOf }: VertexOptions) {
  /** The vertexes that belong to no step, by target. */
  const contexts = new Map<string, Vertex>();
  const definitions = new Map<string, Vertex>();
  const exports = new Map<string, Vertex>();
  const amountsAt = new Map<string, number>();

  const now = () => new Date(clock.now()).toISOString();
  const line = (fields: object) => write(`${jsonText(fields)}\n`);
  const show = (vertex: Vertex, change: Partial<Vertex> = {}) =>
    line({ vertexes: [Object.assign(vertex, change)] });
  const begin = (name: string, key: string): Vertex => {
    const vertex: Vertex = { digest: vertexDigest(key), name, started: now() };
    show(vertex);
    return vertex;
  };
  const end = (vertex: Vertex, change: Partial<Vertex> = {}) =>
    show(vertex, { ...change, completed: vertex.completed ?? now() });
  const tell = (vertex: Vertex, id: string, amount: ProgressAmount = {}) => {
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

  return {
    ...{ now, show, end, tell, warn, contextOf, exportOf },
    log(vertex: Vertex, stream: "stdout" | "stderr", text: string): void {
      const data = Buffer.from(text).toString("base64");
      const number = stream === "stdout" ? 1 : 2;
      line({ logs: [{ vertex: vertex.digest, stream: number, data, timestamp: now() }] });
    },
    /** Ends the vertexes that belong to no step. */
    close(): void {
      for (const vertex of [...contexts.values(), ...exports.values()])
        if (vertex.completed === undefined) end(vertex);
    },
  };
}

/** Joins the parts of a prefix. */
export function prefixed(...parts: (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== "").join(" ");
}

export function vertexDigest(text: string): string {
  return `sha256:${sha256Of(text)}`;
}
