import type { Clock } from "../clock.ts";
import { renderBuildEvent } from "./build-log.ts";
import { isToldInCompact, renderFinishedStep } from "./compact.ts";
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
  /** One line is left of a step that is over, and its output only if it has failed. */
  isCompact?: boolean;
}

export interface Terminal extends Screen {
  hasColor: boolean;
}

interface LiveView extends Progress {
  /** Erases it, for somebody else who gets the terminal. */
  suspend(): void;
  /** Goes on below what somebody else has written. */
  resume(): void;
}

const frameMilliseconds = 100;
/** Somebody who drags a window's edge has let go of it then. */
const draggedMilliseconds = 1000;
/** Columns of `[INFO] `. */
const levelWidth = 7;

/**
 * Log lines, and below them what is going on just now, drawn ten times a second. What is over within a tenth of a second
 * is never drawn.
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

  const widthNow = createCautiousWidth(clock);
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
  // It ends with the closing, and with nothing else.
  drawOn().catch(() => undefined);

  return {
    log,
    emit(event) {
      state = applyEvent(state, event, clock.now());
      labels.note(event);
      if (event.type === "output") held.hold(event.step, event.chunk);
      else if (event.type === "ran") held.tell(event.step, event, labels.labelOf(event));
      else {
        const step = event.type === "step-end" ? state.get(event.step) : undefined;
        if (isCompact && event.type === "step-end" && step !== undefined) {
          const line = renderFinishedStep(step, event.record, terminal.columns - levelWidth);
          if (line !== undefined) log.info(line);
        }
        for (const line of renderBuildEvent(event, labels.labelOf(event), labels.running))
          if (!isCompact || isToldInCompact(event, line)) logLine(line);
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
 * Returns the columns to draw on. A terminal breaks rows that have become too wide for it, and some push as many lines up for good,
 * where nothing can be erased any more: while a window becomes narrower, rows take half of it, so that few are broken.
 */
function createCautiousWidth({ now }: Pick<Clock, "now">): (columns: number) => number {
  let before = 0;
  let narrowedAt = Number.NEGATIVE_INFINITY;
  return (columns) => {
    if (columns < before) narrowedAt = now();
    before = columns;
    return now() - narrowedAt < draggedMilliseconds ? Math.ceil(columns / 2) : columns;
  };
}
