import type { Clock } from "../clock.ts";
import { truncateToWidth } from "./fit.ts";
import { createLiveArea, type Screen } from "./live-area.ts";

/** One line of a terminal with the progress of long work. */
interface ProgressRow {
  show(text: string): void;
  /** Erases the line. */
  end(): void;
}

const frameMilliseconds = 100;

/** Creates a progress row. Without a `terminal` it shows nothing. */
export function createProgressRow(clock: Clock, terminal: Screen | undefined): ProgressRow {
  if (terminal === undefined) return { show() {}, end() {} };
  const area = createLiveArea(terminal);
  let shownAt = Number.NEGATIVE_INFINITY;
  return {
    show(text) {
      if (clock.now() - shownAt < frameMilliseconds) return;
      shownAt = clock.now();
      area.draw([truncateToWidth(text, terminal.columns - 1)]);
    },
    end() {
      if (shownAt > Number.NEGATIVE_INFINITY) area.draw([]);
    },
  };
}
