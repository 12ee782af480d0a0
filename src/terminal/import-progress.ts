import type { Clock } from "../clock.ts";
import { visible } from "../visible.ts";
import { truncateToWidth } from "./fit.ts";
import { createLiveArea, type Screen } from "./live-area.ts";
import type { Log } from "./log.ts";
import { sanitizeRow } from "./terminal-text.ts";

/** Shows that an import or an export is still running. */
interface ImportProgress {
  /** Shows a message of the service. */
  message(text: string): void;
  end(outcome: "imported" | "exported" | "pushed" | "loaded" | "failed"): void;
}

const frameMilliseconds = 250;
const lineMilliseconds = 15_000;
const minUrlColumns = 16;

/** Shows an import: on a terminal in one line that is redrawn, elsewhere in a log line every 15 seconds. */
export function startImportProgress(options: {
  url: string;
  /** The verb to show: "importing" by default. */
  doing?: string;
  clock: Clock;
  log: Log;
  /** `undefined` if there is no terminal. */
  terminal: Screen | undefined;
}): ImportProgress {
  const { clock, log, terminal, doing = "importing" } = options;
  const url = visible(options.url);
  const started = clock.now();
  const ended = new AbortController();
  let last = "";
  /** A long address is cut, and not the progress. */
  const state = (columns = Number.POSITIVE_INFINITY) => {
    const seconds = Math.round((clock.now() - started) / 1000);
    const rest = ["", `${seconds} s`, ...(last === "" ? [] : [last])].join("  ");
    const room = columns - doing.length - 1 - rest.length;
    return `${doing} ${truncateToWidth(url, Math.max(minUrlColumns, room))}${rest}`;
  };
  if (terminal === undefined) {
    log.info(`${doing} ${url}`);
    repeat(clock, lineMilliseconds, ended.signal, () => log.info(`still ${state()}`));
    return { message: (text) => remember(text, log.debug), end: () => ended.abort() };
  }
  const area = createLiveArea(terminal);
  const draw = () => area.draw([truncateToWidth(state(terminal.columns - 1), terminal.columns - 1)]);
  draw();
  repeat(clock, frameMilliseconds, ended.signal, draw);
  return {
    message: (text) => remember(text, draw),
    end(outcome) {
      ended.abort();
      const seconds = Math.round((clock.now() - started) / 1000);
      area.print(outcome === "failed" ? "" : `[INFO] ${outcome} ${url} (${seconds} s)\n`, []);
    },
  };

  function remember(text: string, show: (line: string) => void): void {
    last = sanitizeRow(text).trim();
    show(last);
  }
}

/** Repeats until the signal is aborted. */
function repeat(clock: Clock, milliseconds: number, signal: AbortSignal, action: () => void): void {
  const next = () => {
    clock.sleep(milliseconds, signal).then(
      () => {
        action();
        next();
      },
      () => undefined,
    );
  };
  next();
}
