import type { Clock } from "../clock.ts";
import { truncateToWidth } from "./fit.ts";
import { createLiveArea, type Screen } from "./live-area.ts";

/** One line of a terminal that says how far a long piece of work has come. */
interface ProgressRow {
  show(text: string): void;
  /** Takes the line away. */
  end(): void;
}

const frameMilliseconds = 100;

/** `terminal`: `undefined` where there is none to draw on. Then nothing is shown. */
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
