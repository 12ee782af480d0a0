import type { Clock } from "../clock.ts";
import { renderBuildEvent } from "./build-log.ts";
import { isShownInCompact, renderFinishedStep } from "./compact.ts";
import { createLiveArea, type Screen } from "./live-area.ts";
import { renderLiveRows } from "./live-rows.ts";
import { applyEvent, startLiveState } from "./live-state.ts";
import { createLog, type LogLevel } from "./log.ts";
import { createHeldOutput, type SpoolFile } from "./output/held-output.ts";
import { createLineLogger, type Progress, type Writers } from "./progress.ts";
import { createStepLabels } from "./step-count.ts";
import { formatLogLines, formatOutput } from "./terminal-text.ts";
import { createTurns } from "./turns.ts";

interface LiveViewOptions {
  terminal: Terminal;
  clock: Clock;
  logLevel: LogLevel;
  /** Opens a file for output that is shown once its command is over. */
  openSpoolFile: () => SpoolFile;
  /** True to leave one line for a finished step, and its output only if it failed. */
  isCompact?: boolean;
}

export interface Terminal extends Screen {
  hasColor: boolean;
}

interface LiveView extends Progress {
  /** Erases the view before another program gets the terminal. */
  suspend(): void;
  /** Continues below what another program has written. */
  resume(): void;
}

const frameMilliseconds = 100;
/** The time after which a window is no longer being resized. */
const resizeMilliseconds = 1000;
/** Columns of `[INFO] `. */
const levelWidth = 7;

/**
 * Creates a view with log lines, and the running steps below them, drawn ten times a second. A step that takes less than a tenth
 * of a second is never drawn.
 */
export function createLiveView({
  terminal,
  clock,
  logLevel,
  openSpoolFile,
  isCompact = false,
}: LiveViewOptions): LiveView {
  const area = createLiveArea(terminal);
  const closing = new AbortController();
  const turns = createTurns(clock);
  const labels = createStepLabels();
  let state = startLiveState;
  let isDrawn = false;

  const widthNow = createResizeSafeWidth(clock);
  const rows = () => {
    if (!isDrawn) return [];
    const { rows: lines, hasColor } = terminal;
    const columns = widthNow(terminal.columns);
    return renderLiveRows(state, clock.now(), { columns, lines, hasColor });
  };
  const stream = { isTerminal: true, hasColor: terminal.hasColor };
  const write: Writers = {
    line: (text) => turns.soon(() => area.print(formatLogLines(text, stream), rows())),
    output: (text) => turns.soon(() => area.print(formatOutput(text, stream), rows())),
  };
  const log = createLog(logLevel, write.line);
  const logLine = createLineLogger(log, logLevel, write);
  const held = createHeldOutput({
    ...{ log, logLevel, write: write.output, openSpoolFile },
    onlyFailures: isCompact,
  });

  async function drawOn(): Promise<void> {
    for (;;) {
      await clock.sleep(frameMilliseconds, closing.signal);
      turns.next(() => {
        isDrawn = !closing.signal.aborted;
        area.draw(rows());
      });
    }
  }
  // It rejects only when the view is closed.
  drawOn().catch(() => undefined);

  return {
    log,
    emit(event) {
      state = applyEvent(state, event, clock.now());
      labels.note(event);
      if (event.type === "output") held.hold(event.step, event.chunk);
      else if (event.type === "ran") held.flush(event.step, event, labels.labelOf(event));
      else {
        const step = event.type === "step-end" ? state.get(event.step) : undefined;
        if (isCompact && event.type === "step-end" && step !== undefined) {
          const line = renderFinishedStep(step, event.record, terminal.columns - levelWidth);
          if (line !== undefined) log.info(line);
        }
        for (const line of renderBuildEvent(event, labels.labelOf(event), labels.running))
          if (!isCompact || isShownInCompact(event, line)) logLine(line);
      }
    },
    fail: () => false,
    suspend: () => area.draw([]),
    resume: () => area.leave(),
    close() {
      closing.abort();
      held.close();
      turns.finish();
      isDrawn = false;
      area.draw([]);
    },
  };
}

/**
 * Creates a function that returns the columns to use. When a window becomes narrower, terminals wrap rows that are too wide, and
 * some scroll as many lines away, where they can't be erased. So rows take half of the width meanwhile, and few are wrapped.
 */
function createResizeSafeWidth({ now }: Pick<Clock, "now">): (columns: number) => number {
  let before = 0;
  let narrowedAt = Number.NEGATIVE_INFINITY;
  return (columns) => {
    if (columns < before) narrowedAt = now();
    before = columns;
    return now() - narrowedAt < resizeMilliseconds ? Math.ceil(columns / 2) : columns;
  };
}
