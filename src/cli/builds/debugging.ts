import { layerBranch } from "../../builder/cache/layer-cache.ts";
import { FailedStepError } from "../../builder/operations/failed-step.ts";
import { BoughError } from "../../errors.ts";
import { commandLine } from "../command-line/documentation.ts";
import type { GlobalOptions } from "../command-line/globals.ts";

const shownDigits = 12;

/** To the error of a failed RUN the lines to paste that step into the image before it. */
export function withDebugHint(error: unknown, session: string, globals: GlobalOptions): unknown {
  const step = failedStepIn(error);
  if (step === undefined || !(error instanceof BoughError)) return error;
  const layer = step.branch.slice(0, layerBranch("").length + shownDigits);
  const without = step.hasStaged ? " (without what COPY and ADD have staged since)" : "";
  const hint = [
    ...(error.hint === undefined ? [] : [error.hint]),
    `To step into the image before it${without}:`,
    `  ${commandLine(globals, ["-S", session, "session", "checkout", layer])}`,
    `  ${commandLine(globals, ["-S", session, "run", "-D", "--"])} COMMAND`,
  ].join("\n");
  return new BoughError(error.message, { kind: error.kind, hint, cause: error });
}

/** The error's place in the Dockerfile is wrapped around it. */
function failedStepIn(error: unknown): FailedStepError | undefined {
  if (error instanceof FailedStepError) return error;
  return error instanceof Error ? failedStepIn(error.cause) : undefined;
}
