import { resolve } from "node:path";
import type { McpServer, ToolCallback } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import { BoughError } from "../../errors.ts";
import { abandonable } from "../../service/http/deadline.ts";
import { failureOf } from "../../terminal/failure.ts";
import { jsonText } from "../../terminal/json-text.ts";
import type { Invocation } from "../command-line/command.ts";
import { readContextSource } from "../contexts/context-source.ts";
import type { Call } from "./call.ts";
import type { Root } from "./root.ts";
import { failureForAgent } from "./words.ts";

/** A tool that an agent can call. */
export interface Tool<Input extends z.ZodObject, Output extends z.ZodObject> {
  name: string;
  title: string;
  description: string;
  input: Input;
  output: Output;
  annotations: ToolAnnotations;
  /** Errors that it throws are sent to the agent, with their hints. */
  perform(input: z.infer<Input>, call: Call): Promise<z.infer<Output>>;
}

/** The state that all calls share. */
export interface Host {
  invocation: Invocation;
  root: Root;
  /** Calls that are under way. */
  running: Set<Promise<unknown>>;
}

/** Annotations of tools that change nothing, neither on the service nor here. */
export const readOnly: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
/** Annotations of tools that make images and move tags or branches, but lose nothing. */
export const additive: ToolAnnotations = { readOnlyHint: false, destructiveHint: false, openWorldHint: true };

export function addTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  server: McpServer,
  host: Host,
  tool: Tool<Input, Output>,
): void {
  const { name, title, description, input, output, annotations } = tool;
  const answer: ToolCallback<z.ZodObject> = async (given, extra) => {
    const { progressToken } = extra._meta ?? {};
    const progress = createProgress(host.invocation, (params) => {
      if (progressToken === undefined) return;
      const sent = extra.sendNotification({
        method: "notifications/progress",
        params: { progressToken, ...params },
      });
      // A client that has disconnected needs no progress.
      sent.catch(() => undefined);
    });
    const call: Call = {
      invocation: host.invocation,
      root: host.root,
      signal: AbortSignal.any([host.invocation.runtime.signal, interruptionBy(extra.signal)]),
      warnings: [],
      report: progress.report,
    };
    const performed = perform(tool, given as z.infer<Input>, call).finally(progress.end);
    host.running.add(performed);
    return performed.finally(() => host.running.delete(performed));
  };
  server.registerTool(
    name,
    {
      title,
      description,
      inputSchema: input as z.ZodObject,
      outputSchema: output as z.ZodObject,
      annotations,
    },
    answer,
  );
}

async function perform<Input extends z.ZodObject, Output extends z.ZodObject>(
  tool: Tool<Input, Output>,
  given: z.infer<Input>,
  call: Call,
): Promise<CallToolResult> {
  const warnings = () => call.warnings.map((text) => ({ type: "text" as const, text: `warning: ${text}` }));
  try {
    const result = await tool.perform(given, call);
    return {
      content: [{ type: "text", text: jsonText(result) }, ...warnings()],
      structuredContent: result,
    };
  } catch (error) {
    const text = failureForAgent(failureOf(error));
    return { isError: true, content: [{ type: "text", text }, ...warnings()] };
  }
}

/** Returns a signal that ends the call as Ctrl-C would. */
function interruptionBy(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(new BoughError("cancelled", { kind: "interrupted" }));
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return controller.signal;
}

/** Interval of progress messages while nothing happens: clients give up after a minute without any. */
const silenceMilliseconds = 10_000;
/** The protocol requires that progress increases with each notification. */
const minProgress = 0.001;

interface Progress {
  progress: number;
  total?: number;
  message: string;
}

function createProgress(
  { runtime: { clock } }: Invocation,
  send: (progress: Progress) => void,
): { report: Call["report"]; end: () => void } {
  const over = new AbortController();
  let progress = 0;
  let last: { message: string; total: number | undefined } = { message: "working", total: undefined };
  const report: Call["report"] = (message, done = 0, total) => {
    progress = Math.max(done, progress + minProgress);
    last = { message, total };
    send({ progress, message, ...(total === undefined ? {} : { total }) });
  };
  const beat = async () => {
    for (;;) {
      await clock.sleep(silenceMilliseconds, over.signal);
      report(last.message, progress, last.total);
    }
  };
  beat().catch(() => undefined);
  return { report, end: () => over.abort() };
}

/** The last build of each directory or repository. */
const builds = new Map<string, Promise<unknown>>();

/**
 * Runs builds of the same context one after another: of two in one process, each would take the other's operations for those that
 * an earlier build left behind.
 */
export async function inTurn<Result>(
  context: string,
  call: Call,
  action: () => Promise<Result>,
): Promise<Result> {
  const directory = placeOf(context, call.invocation.runtime.workingDirectory);
  const before = builds.get(directory);
  const own = (async () => {
    if (before !== undefined) {
      call.report("waiting for another build of the same context");
      await abandonable(call.signal, before);
    }
    return action();
  })();
  const over = own.then(
    () => before,
    () => before,
  );
  builds.set(directory, over);
  try {
    return await own;
  } finally {
    if (builds.get(directory) === over) builds.delete(directory);
  }
}

/** All commits of a repository share one session, so they share a place, too. */
function placeOf(context: string, workingDirectory: string): string {
  const source = readContextSource(context, workingDirectory);
  if (source.kind !== "repository") return resolve(workingDirectory, context);
  const { remote, subdirectory } = source.address;
  return `${remote}#:${subdirectory}`;
}
