import { resolve } from "node:path";
import type { McpServer, ToolCallback } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import { BoughError } from "../../errors.ts";
import { rejectOnAbort } from "../../service/http/deadline.ts";
import { failureOf } from "../../terminal/failure.ts";
import { jsonText } from "../../terminal/json-text.ts";
import type { Invocation } from "../command-line/command.ts";
import { readContextSource } from "../contexts/context-source.ts";
import { failureForAgent } from "./agent-wording.ts";
import type { Root } from "./root.ts";
import type { ToolCall } from "./tool-call.ts";

/** A tool that an agent can call. */
export interface Tool<Input extends z.ZodObject, Output extends z.ZodObject> {
  name: string;
  title: string;
  description: string;
  input: Input;
  output: Output;
  annotations: ToolAnnotations;
  /** Performs a call. Errors are sent to the agent with their hints. */
  perform(input: z.infer<Input>, call: ToolCall): Promise<z.infer<Output>>;
}

/** State that all calls share. */
export interface ServerState {
  invocation: Invocation;
  root: Root;
  /** Running calls. */
  running: Set<Promise<unknown>>;
}

/** Annotations of tools that change nothing, neither on the service nor on this machine. */
export const readOnly: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
/** Annotations of tools that make images and move tags or branches, but remove nothing. */
export const additive: ToolAnnotations = { readOnlyHint: false, destructiveHint: false, openWorldHint: true };

export function addTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  server: McpServer,
  host: ServerState,
  tool: Tool<Input, Output>,
): void {
  const { name, title, description, input, output, annotations } = tool;
  const callback: ToolCallback<z.ZodObject> = async (given, extra) => {
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
    const call: ToolCall = {
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
    callback,
  );
}

async function perform<Input extends z.ZodObject, Output extends z.ZodObject>(
  tool: Tool<Input, Output>,
  given: z.infer<Input>,
  call: ToolCall,
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

/** Returns a signal that ends a call as Ctrl-C ends a command. */
function interruptionBy(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(new BoughError("cancelled", { kind: "interrupted" }));
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return controller.signal;
}

/** The interval of progress messages while nothing happens: clients give up after a minute without any. */
const progressIntervalMilliseconds = 10_000;
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
): { report: ToolCall["report"]; end: () => void } {
  const stopped = new AbortController();
  let progress = 0;
  let last: { message: string; total: number | undefined } = { message: "working", total: undefined };
  const report: ToolCall["report"] = (message, done = 0, total) => {
    progress = Math.max(done, progress + minProgress);
    last = { message, total };
    send({ progress, message, ...(total === undefined ? {} : { total }) });
  };
  const repeatProgress = async () => {
    for (;;) {
      await clock.sleep(progressIntervalMilliseconds, stopped.signal);
      report(last.message, progress, last.total);
    }
  };
  repeatProgress().catch(() => undefined);
  return { report, end: () => stopped.abort() };
}

/** The last build of each directory or repository. */
const builds = new Map<string, Promise<unknown>>();

/**
 * Runs builds of the same context one after another. Of two concurrent builds in one process, each would take the operations of the other
 * for those of a build that has died.
 */
export async function serializeByContext<Result>(
  context: string,
  call: ToolCall,
  action: () => Promise<Result>,
): Promise<Result> {
  const directory = contextKey(context, call.invocation.runtime.workingDirectory);
  const before = builds.get(directory);
  const own = (async () => {
    if (before !== undefined) {
      call.report("waiting for another build of the same context");
      await rejectOnAbort(call.signal, before);
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

/** Returns the key by which builds are serialized. All commits of a repository share a session, and thus a key. */
function contextKey(context: string, workingDirectory: string): string {
  const source = readContextSource(context, workingDirectory);
  if (source.kind !== "repository") return resolve(workingDirectory, context);
  const { remote, subdirectory } = source.address;
  return `${remote}#:${subdirectory}`;
}
