import type { BuildEvent } from "../builder/events.ts";
import type { Clock } from "../clock.ts";
import { failureOf } from "./failure.ts";
import { jsonText } from "./json-text.ts";
import { createReportedLog, type LogLevel } from "./log.ts";
import type { Progress } from "./progress.ts";
import { countSteps } from "./step-row.ts";

interface JsonProgressOptions {
  write: (text: string) => void;
  clock: Pick<Clock, "now">;
  /** The level of `log` events. */
  logLevel: LogLevel;
}

/** The interval for repeated progress events. The event at the end has the total anyway. */
const amountsEveryMilliseconds = 200;

/**
 * Writes a build for tools: one JSON object per line for every event, with its `type` and its `time` (ISO 8601). Log lines are
 * events of type `log`. Events of an instruction have its `stage` and `step`. The last event is `finished` or `error`.
 */
export function createJsonProgress({ write, clock, logLevel }: JsonProgressOptions): Progress {
  /** The time of the last amount event, by step. */
  const amountsAt = new Map<number | undefined, number>();
  const line = (type: string, fields: object) => {
    const record = { time: new Date(clock.now()).toISOString(), type, ...fields };
    // A key without a value is written as null.
    write(`${jsonText(record, { replace: (_, value) => (value === undefined ? null : value) })}\n`);
  };
  return {
    log: createReportedLog(logLevel, (level, message) => line("log", { level, message })),
    emit(event) {
      if (isAmount(event)) {
        if (clock.now() - (amountsAt.get(event.step) ?? 0) < amountsEveryMilliseconds) return;
        amountsAt.set(event.step, clock.now());
      }
      const { stage, step, target } = event;
      const place = { ...(target !== undefined && { target }), ...(step !== undefined && { stage, step }) };
      line(event.type, { ...place, ...fieldsOf(event) });
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

/** Returns an event's fields, flattened and with public names. */
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
      const { image, tags, session, steps, uploaded, seconds, exported } = event.result;
      const digest = exported[0]?.descriptor.digest ?? null;
      return {
        image,
        tag: tags[0] ?? null,
        tags,
        session,
        digest,
        steps: countSteps(steps),
        uploaded,
        seconds,
      };
    }
    default: {
      const { type: _, stage: __, step: ___, target: ____, ...fields } = event;
      return fields;
    }
  }
}
