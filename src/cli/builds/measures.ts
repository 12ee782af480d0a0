import { steadyTime } from "../../clock.ts";
import type { Log } from "../../terminal/log.ts";
import type { Progress } from "../../terminal/progress.ts";
import type { RecordedBuild } from "../../terminal/timeline/spans.ts";
import { chooseServiceFor, serviceName } from "../service/choice.ts";
import type { ServiceWatcher } from "../service/connection.ts";
import type { BuildInvocation } from "./request.ts";
import type { ResultFiles } from "./result-files.ts";

/** The measurements of a build for `--trace` and `--timings`. */
export interface Measures extends ServiceWatcher {
  /** The same progress, with its events recorded. */
  progress: Progress;
  /** Ends the measurement of a build that took `seconds`: writes the trace, and with `--progress json` emits the timings. */
  end(seconds: number | undefined): void;
  /** Ends the measurement like `end`, but only logs an error of its own, since the build's error is the one to report. */
  endAfterFailure(log: Log): void;
  /** Prints the timings on standard error, except with `--progress json`. */
  print(): void;
}

/** Starts the measurement. Returns `undefined`, and loads no code for it, if neither option is given. */
export async function startMeasures(
  { options, runtime, globals }: BuildInvocation,
  progress: Progress,
  files: Pick<ResultFiles, "writeTrace">,
): Promise<Measures | undefined> {
  const [wantsTrace, wantsTimings] = [options.trace !== undefined, options.timings === true];
  if (!wantsTrace && !wantsTimings) return undefined;
  const { createTimeline } = await import("../../terminal/timeline/timeline.ts");
  const { createRequestRecorder } = await import("../../terminal/timeline/requests.ts");
  const { renderTrace } = await import("../../terminal/timeline/trace-json.ts");
  const { describeTimings, renderTimings, timingsOf } = await import("../../terminal/timeline/timings.ts");
  const { clock, stderr } = runtime;
  const now = () => steadyTime(clock);
  const requests = createRequestRecorder(now);
  const timeline = createTimeline(now, requests);
  const isJson = options.progress === "json";
  let build: RecordedBuild | undefined;
  let isPrinted = false;

  function end(seconds: number | undefined): void {
    if (build !== undefined) return;
    build = timeline.end(seconds);
    if (wantsTimings && isJson)
      progress.emit({ type: "timings", timings: describeTimings(timingsOf(build), build) });
    if (!wantsTrace) return;
    files.writeTrace(renderTrace(build, { command: "bough build", service: nameService() }));
  }

  function nameService(): string {
    if (options["platform-service"] !== undefined) return "services";
    return serviceName(chooseServiceFor(runtime, globals));
  }

  return {
    progress: {
      ...progress,
      emit(event) {
        timeline.note(event);
        progress.emit(event);
      },
    },
    watch: requests.watch,
    onServed: timeline.noteServed,
    end,
    endAfterFailure(log) {
      try {
        end(undefined);
      } catch (error) {
        log.warn(error instanceof Error ? error.message : String(error));
      }
    },
    print() {
      if (build === undefined || !wantsTimings || isJson || isPrinted) return;
      isPrinted = true;
      const columns = stderr.isTerminal ? stderr.columns : 80;
      stderr.write(renderTimings(timingsOf(build), build, columns));
    },
  };
}
