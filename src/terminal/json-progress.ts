import type { BuildEvent } from "../builder/events.ts";
import type { Clock } from "../clock.ts";
import { failureOf } from "./failure.ts";
import { jsonText } from "./json-text.ts";
import { createReportedLog, type LogLevel } from "./log.ts";
import type { Progress } from "./progress.ts";
import { countSteps } from "./step-count.ts";

interface JsonProgressOptions {
  write: (text: string) => void;
  clock: Pick<Clock, "now">;
  /** The level of `log` events. */
  logLevel: LogLevel;
}

/** What comes again and again is passed on this often; what it counts up to is told at the end in any case. */
const amountsEveryMilliseconds = 200;

/**
 * Writes for tools: one JSON object a line for every event of the build, with its `type` and its `time` (ISO 8601). Log lines are
 * events of type `log`; those of an instruction say its `stage` and `step`; the last one is `finished` or `error`.
 */
export function createJsonProgress({ write, clock, logLevel }: JsonProgressOptions): Progress {
  /** Amounts by step. */
  const amountsAt = new Map<number | undefined, number>();
  const line = (type: string, fields: object) => {
    const record = { time: new Date(clock.now()).toISOString(), type, ...fields };
    // A key that has no value just now is there all the same.
    write(`${jsonText(record, { replace: (_, value) => (value === undefined ? null : value) })}\n`);
  };
  return {
    log: createReportedLog(logLevel, (level, message) => line("log", { level, message })),
    emit(event) {
      if (isAmount(event)) {
        if (clock.now() - (amountsAt.get(event.step) ?? 0) < amountsEveryMilliseconds) return;
        amountsAt.set(event.step, clock.now());
      }
      const { stage, step } = event;
      line(event.type, { ...(step === undefined ? {} : { stage, step }), ...fieldsOf(event) });
    },
    fail(error) {
      const { kind, message, hint } = failureOf(error);
      line("error", { code: kind, message, hint: hint ?? null });
      return true;
    },
    close() {},
  };
}

function isAmount({ type }: BuildEvent): boolean {
  return type === "hashed" || type === "download-progress" || type === "upload-progress";
}

/** Flat, and with names of their own rather than the program's inner values. */
function fieldsOf(event: BuildEvent): object {
  switch (event.type) {
    case "step": {
      const { instruction, steps, inStage } = event;
      const { line, name, title } = instruction;
      const shown = { steps, line, name, instruction: title };
      return inStage === undefined ? shown : { ...shown, inStage };
    }
    case "step-end":
      return event.record;
    case "output":
      return event.chunk;
    case "timings":
      return event.timings;
    case "finished": {
      const { image, tags, session, steps, uploaded, seconds } = event.result;
      return { image, tag: tags[0] ?? null, tags, session, steps: countSteps(steps), uploaded, seconds };
    }
    default: {
      const { type: _, stage: __, step: ___, ...fields } = event;
      return fields;
    }
  }
}
