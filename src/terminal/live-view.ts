import type { BuildEvent, Ran } from "../builder/events.ts";
import type { Clock } from "../clock.ts";
import type { WordsOf } from "../messages/wording.ts";
import { describeMissingParts, type LogLine, renderBuildEvent, summarize } from "./build-log.ts";
import { paintFailed, paintFinished } from "./color.ts";
import { createLiveArea, type Screen } from "./live-area.ts";
import { applyEvent, type LiveStep, startLiveState } from "./live-state.ts";
import { createLog, type LogLevel } from "./log.ts";
import { createHeldOutput, type SpoolFile } from "./output/held-output.ts";
import { createLineLogger, type Progress, type Writers } from "./progress.ts";
import { shortId } from "./short-id.ts";
import { createStepLabels, formatElapsed, renderLiveRows, renderStepRow } from "./step-row.ts";
import { formatLogLines, formatOutput } from "./terminal-text.ts";

interface LiveViewOptions {
  terminal: Terminal;
  clock: Clock;
  logLevel: LogLevel;
  /** Opens a file for output that is shown once its command is over. */
  openSpoolFile: () => SpoolFile;
  /** True to show a command's output only if it failed. */
  isCompact?: boolean;
  /** Aborted when the build is interrupted. */
  signal?: AbortSignal;
  /** The words for options and commands in messages. */
  wordsOf?: WordsOf | undefined;
}

interface Terminal extends Screen {
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
/** Instructions that are shown once they have ended; others only if they have made a layer. */
const working = /^(FROM|RUN|COPY|ADD)\b/i;

/**
 * Creates a view with a row for each finished step, warnings among them, and the running steps below, drawn ten times a second. A
 * step that takes less than a tenth of a second is not drawn while it runs.
 */
export function createLiveView({
  terminal,
  clock,
  logLevel,
  openSpoolFile,
  isCompact = false,
  signal,
  wordsOf,
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
    line: (text) =>
      turns.soon(() => area.print(formatLogLines(text, { ...stream, columns: terminal.columns }), rows())),
    output: (text) => turns.soon(() => area.print(formatOutput(text, stream), rows())),
  };
  const log = createLog(logLevel, write.line, wordsOf);
  const logLine = createLineLogger(log, logLevel, write, wordsOf);
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

  const isShown = logLevel === "info" || logLevel === "debug";
  /** Finished and failed steps whose row is shown. */
  const shown = new Set<number>();

  function showRow(step: LiveStep | undefined, end: string, paint: (text: string) => string): void {
    if (step === undefined || shown.has(step.step)) return;
    shown.add(step.step);
    const style = { columns: terminal.columns, paint: terminal.hasColor ? paint : (text: string) => text };
    const row = renderStepRow(step, end, style);
    turns.soon(() => area.print(`${row}\n`, rows()));
  }

  function showElapsed(step: LiveStep | undefined): void {
    if (isShown && step !== undefined) showRow(step, formatElapsed(clock.now() - step.since), paintFinished);
  }

  function showFailed(step: LiveStep | undefined): void {
    if (step !== undefined) showRow(step, `failed ${formatElapsed(clock.now() - step.since)}`, paintFailed);
  }

  /** Shows the output below its step's row, except that of a command that Ctrl-C has ended. */
  function showRan(step: number, ran: Ran): void {
    if (signal?.aborted) held.drop(step);
    else if (ran.succeeded && !isCompact && held.has(step)) showElapsed(state.get(step));
    else if (!ran.succeeded && ran.abandoned !== true) showFailed(state.get(step));
    held.flush(step, ran, undefined);
  }

  function showEvent(event: BuildEvent): void {
    if (event.step === undefined) return;
    const step = state.get(event.step);
    if (event.type === "step") shown.delete(event.step);
    else if (event.type === "output") held.hold(event.step, event.chunk);
    else if (event.type === "ran") showRan(event.step, event);
    else if (event.type === "step-failed") {
      if (event.abandoned !== true && !signal?.aborted) showFailed(step);
    } else if (event.type === "step-end") {
      const { cached, layer, instruction, seconds } = event.record;
      if (isShown && (working.test(instruction) || layer !== null))
        showRow(step, cached === true ? "cached" : formatElapsed(seconds * 1000), paintFinished);
    }
  }

  return {
    log,
    emit(event) {
      state = applyEvent(state, event, clock.now());
      labels.note(event);
      showEvent(event);
      for (const line of renderForPeople(event, labels.labelOf(event), logLevel)) logLine(line);
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

/** Defers actions to the next turn of the event loop, after signals that must be handled first. */
interface Turns {
  /** Runs an action now, or in the next turn if the process may have been stopped. Keeps the order. */
  soon(action: () => void): void;
  /** Runs an action in the next turn. */
  next(action: () => void): void;
  /** Runs all deferred actions at once. */
  finish(): void;
}

/** A longer gap between two calls means that the process was stopped, as by SIGSTOP. */
const unseenMilliseconds = 120;

/**
 * A process that continues after a stop runs timers that are due before it handles SIGCONT. A program that draws on a terminal
 * must handle SIGCONT first, since another program has written there. Call `next` ten times a second.
 */
export function createTurns({ now }: Pick<Clock, "now">): Turns {
  const waiting: (() => void)[] = [];
  let seenAt = now();
  const finish = () => {
    for (const action of waiting.splice(0)) action();
  };
  const next = (action: () => void) => {
    seenAt = now();
    if (waiting.push(action) === 1) setImmediate(finish);
  };
  return {
    soon(action) {
      const isLate = now() - seenAt > unseenMilliseconds;
      if (isLate || waiting.length > 0) next(action);
      else action();
    },
    next,
    finish,
  };
}

/**
 * Renders an event for the live view: only what the rows of steps do not show, with short ids. At level `debug` it is rendered as for
 * programs. `label`: see `renderBuildEvent`.
 */
function renderForPeople(event: BuildEvent, label: string, logLevel: LogLevel): LogLine[] {
  if (logLevel === "debug") return renderBuildEvent(event, label);
  switch (event.type) {
    case "warning":
    case "excluded":
    case "large-context":
    case "explained":
    case "url-cache-hit":
    case "forgotten-files":
    case "forgotten-layer":
      return renderBuildEvent(event, label);
    case "cancelled":
      return event.confirmed ? [] : renderBuildEvent(event, label);
    case "tagged":
      return renderBuildEvent({ ...event, image: shortId(event.image) }, label);
    case "finished": {
      const named = event.target === undefined ? "" : `${event.target}: `;
      const text = `${named}${summarize(event.result, { isBrief: true })}`;
      return [{ level: "info", text }, ...describeMissingParts(event.result)];
    }
    default:
      return [];
  }
}
