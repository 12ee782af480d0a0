import { layerBranch } from "../../builder/cache/layer-cache.ts";
import { FailedStepError } from "../../builder/operations/failed-step.ts";
import { BoughError } from "../../errors.ts";
import { unlessStateDiskFull } from "../../state-failure.ts";
import type { Store } from "../../store/store.ts";
import { commandLine } from "../command-line/documentation.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import { keepFailedStep } from "../run/failed-step.ts";

const shownDigits = 12;

interface Place {
  session: string;
  globals: GlobalOptions;
  store: Store;
  /** True if a shell is opened in the failed step now, without a further command line. */
  opensShell: boolean;
}

/** Adds to the error of a failed RUN the command lines that open a shell in its place. */
export function withDebugHint(error: unknown, place: Place): unknown {
  const step = failedStepIn(error);
  if (step === undefined || !(error instanceof BoughError)) return error;
  const hints = [...(error.hint === undefined ? [] : [error.hint]), ...waysInto(step, place)];
  const hint = hints.length === 0 ? undefined : hints.join("\n");
  return new BoughError(error.message, { kind: error.kind, hint, cause: error });
}

function waysInto(step: FailedStepError, { session, globals, store, opensShell }: Place): string[] {
  const line = (...words: string[]) => `  ${commandLine(globals, ["-S", session, ...words])}`;
  if (step.place === undefined) {
    const layer = step.branch.slice(0, layerBranch("").length + shownDigits);
    return [
      "To open the image before the failed step:",
      line("session", "checkout", layer),
      `${line("run", "-D", "--")} COMMAND`,
    ];
  }
  const { place } = step;
  // The step's own error is the one to report.
  const missing = unlessStateDiskFull(() => keepFailedStep(session, step, place, store));
  if (missing === undefined || opensShell) return [];
  const without = missing.length === 0 ? "" : ` (without ${missing.join(", ")})`;
  return [
    `To open the failed step, as its command found it${without}:`,
    line("shell", "--failed-step"),
    `${line("run", "-D", "--failed-step", "--")} COMMAND`,
  ];
}

/** Finds the error of a failed step. An error that has its place in the Dockerfile is wrapped around it. */
export function failedStepIn(error: unknown): FailedStepError | undefined {
  if (error instanceof FailedStepError) return error;
  return error instanceof Error ? failedStepIn(error.cause) : undefined;
}
