import type { BuildEvent } from "../../../builder/events.ts";
import type { BuildResult } from "../../../builder/result.ts";
import { BoughError } from "../../../errors.ts";
import { renderBuildEvent } from "../../../terminal/build-log.ts";
import { failureOf } from "../../../terminal/failure.ts";
import type { Progress } from "../../../terminal/progress.ts";
import { type Call, logTo } from "../call.ts";
import { createTail, type Tail } from "./tail.ts";

/** Collects a build's events for an agent. */
interface BuildReport {
  progress: Progress;
  /** Waits for the build. Its rejection includes the output of the failed step. */
  finish(build: Promise<unknown>): Promise<BuildResult>;
}

/** Only the end of a failed step's output is reported: the error is there. */
const maxOutputBytes = 32 * 1024;

export function createBuildReport({ report, warnings }: Pick<Call, "report" | "warnings">): BuildReport {
  /** Output of each running step, by number. */
  const outputs = new Map<number, Tail>();
  let failedOutput: Tail | undefined;
  let result: BuildResult | undefined;
  let ended = 0;
  let total = 0;
  const log = logTo(warnings);

  function note(event: BuildEvent): void {
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
        const tail = outputs.get(event.step) ?? createTail(maxOutputBytes);
        outputs.set(event.step, tail);
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
      emit: note,
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
  const { message, hint, kind } = failureOf(error);
  if (text === "" || kind === "interrupted") return error;
  const beginning = output?.isWhole === false ? " (last part)" : "";
  return new BoughError(`${message}\nIts output${beginning}:\n${text}`, {
    kind,
    cause: error,
    hint,
  });
}
