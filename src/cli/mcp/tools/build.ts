import { z } from "zod";
import type { BuildEvent } from "../../../builder/events.ts";
import type { BuildResult } from "../../../builder/result.ts";
import { BoughError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { renderBuildEvent } from "../../../terminal/build-log.ts";
import { failureOf } from "../../../terminal/failure.ts";
import type { Progress } from "../../../terminal/progress.ts";
import { parseStages } from "../../builds/options/build-parsers.ts";
import type { BuildRequest } from "../../builds/request.ts";
import { runBuildCommand } from "../../builds/run-build.ts";
import { parseSecret } from "../../entries/secret.ts";
import { limitParsers } from "../../run/limit-options.ts";
import { extraHost } from "../../run/network-option.ts";
import { createTail, type Tail } from "../output-tail.ts";
import { additive, serializeByContext, type Tool } from "../tool.ts";
import { surroundingsFor, type ToolCall, warningLog } from "../tool-call.ts";
import { buildInputs, buildRequest, network, timeoutSeconds, toolInput } from "./fields.ts";

const input = toolInput({
  ...buildInputs,
  tags: z.array(z.string().min(1)).optional().describe("Tags of the image, NAME or NAME:TAG"),
  secrets: z
    .array(z.string().min(1))
    .optional()
    .describe(
      "For RUN --mount=type=secret: id=ID[,src=FILE|,env=NAME], a file of this machine, or a variable that the server's start allows",
    ),
  no_cache: z.boolean().optional().describe("Build every layer again, without the cache"),
  no_cache_filter: z
    .array(z.string().min(1))
    .optional()
    .describe("Build only these stages again, by name or number, and what uses them; implies docker"),
  locked: z.boolean().optional().describe("Fail if the lock lacks something, and leave it as it is"),
  update_lock: z
    .array(z.string().min(1))
    .optional()
    .describe("Names in the lock that are to mean what they mean now; an empty list for all"),
  pull: z.boolean().optional().describe("Import the images of FROM again, even if they are stored"),
  timeout_seconds: timeoutSeconds,
  network,
  add_hosts: z
    .record(z.string(), z.string())
    .optional()
    .describe("IP addresses by name, for /etc/hosts of commands; host-gateway is the machine that runs them"),
  shm_size: z.string().min(1).optional().describe("Size of /dev/shm in commands, as in 1g (default: 64m)"),
});

const output = z.object({
  image: z.string().describe("UUID of the image"),
  tags: z.array(z.string()),
  session: z.string().describe("Key of the build's session, which has a branch for each layer"),
  seconds: z.number(),
  uploaded: z.object({ files: z.number(), bytes: z.number() }),
  steps: z.array(
    z.object({
      step: z.number(),
      stage: z.string().nullable(),
      line: z.number(),
      instruction: z.string(),
      cached: z.boolean().nullable().describe("Null if the instruction makes no layer"),
      seconds: z.number(),
      image: z.string().nullable(),
      operation: z.string().nullable(),
    }),
  ),
  warnings: z.array(z.string()).describe("Also the reasons why the image differs from what was asked for"),
});

export const build: Tool<typeof input, typeof output> = {
  name: "build",
  title: "Build an image",
  description:
    "Build an image from a Dockerfile, with cached layers. Reports each step as progress; cancelling stops the build on the service. A failed step is an error with its line and output; the layers before it stay cached.",
  input,
  output,
  annotations: additive,
  async perform(given, call) {
    const { no_cache_filter = [] } = given;
    const request = buildRequest(given, no_cache_filter.length > 0);
    const options: BuildRequest["options"] = {
      ...request.options,
      "no-cache": given.no_cache,
      pull: given.pull,
      locked: given.locked,
      timeout: given.timeout_seconds,
      network: given.network,
      "shm-size": given.shm_size === undefined ? undefined : limitParsers["shm-size"](given.shm_size),
      tag: given.tags,
      "no-cache-filter": parseStages(no_cache_filter),
      "update-lock": given.update_lock?.length === 0 ? ["true"] : given.update_lock,
      "add-host": Object.entries(given.add_hosts ?? {}).map(([host, address]) => extraHost(host, address)),
      secret: given.secrets?.map(parseSecret),
    };
    const invocation = { ...surroundingsFor(call), ...request, options };
    call.root.requireBuildFiles(invocation);
    const report = createBuildReport(call);
    return serializeByContext(given.context, call, async () => {
      const result = await report.finish(runBuildCommand(invocation, async () => report.progress));
      return {
        image: result.image,
        tags: [...result.tags],
        session: result.session,
        seconds: result.seconds,
        uploaded: result.uploaded,
        steps: result.steps.map(({ step, stage, line, instruction, cached, seconds, image, operation }) => ({
          ...{ step, stage: stage === null ? null : (stage.name ?? String(stage.index)), line, instruction },
          ...{ cached, seconds, image, operation },
        })),
        warnings: call.warnings.splice(0),
      };
    });
  },
};

/** Collects a build's events for an agent. */
interface BuildReport {
  progress: Progress;
  /** Waits for the build. The error of a failed build includes the output of the failed step. */
  finish(build: Promise<unknown>): Promise<BuildResult>;
}

/** The maximum size of a failed step's output in its error: the end, where the reason usually is. */
const maxOutputBytes = 32 * 1024;

export function createBuildReport({ report, warnings }: Pick<ToolCall, "report" | "warnings">): BuildReport {
  /** Output of each running step, by number. */
  const outputs = new Map<number, Tail>();
  let failedOutput: Tail | undefined;
  let result: BuildResult | undefined;
  let ended = 0;
  let total = 0;
  const log = warningLog(warnings);

  function handleEvent(event: BuildEvent): void {
    switch (event.type) {
      case "step":
        total = event.steps;
        report(`[${event.step}/${total}] ${event.instruction.title}`, ended, total);
        break;
      case "step-end":
        ended += 1;
        outputs.delete(event.step);
        report(`[${event.step}/${total}] done: ${event.record.instruction}`, ended, total);
        break;
      case "output": {
        const tail = outputs.getOrInsertComputed(event.step, () => createTail(maxOutputBytes));
        tail.add(event.chunk.text);
        break;
      }
      case "ran":
        if (!event.succeeded && event.abandoned !== true) failedOutput = outputs.get(event.step);
        outputs.delete(event.step);
        break;
      case "finished":
        result = event.result;
        break;
      default:
    }
    for (const { level, text } of renderBuildEvent(event)) if (level === "warn") log.warn(text);
  }

  return {
    progress: {
      log,
      emit: handleEvent,
      fail: () => false,
      close() {},
    },
    async finish(build) {
      try {
        await build;
      } catch (error) {
        throw withOutput(error, failedOutput);
      }
      if (result === undefined) throw new Error("a build has ended without a result");
      return result;
    },
  };
}

function withOutput(error: unknown, output: Tail | undefined): unknown {
  const text = output?.text().trimEnd() ?? "";
  const { wording: message, hint, kind } = failureOf(error);
  if (text === "" || kind === "interrupted") return error;
  const beginning = output?.isWhole === false ? " (last part)" : "";
  return new BoughError(wording`${message}\nIts output${beginning}:\n${text}`, {
    kind,
    cause: error,
    hint,
  });
}
