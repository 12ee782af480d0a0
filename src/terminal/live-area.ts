/**
 * Rows at the bottom of a terminal that are redrawn, with log lines above them. Each frame is one write, which leaves the cursor
 * visible at the beginning of the line below, so that the terminal is in order however the process ends. If there are more rows
 * than fit, the first are drawn.
 */
interface LiveArea {
  /**
   * Replaces the rows. Each must be narrower than the terminal, and have no control sequences but colours and cursor movements
   * within its line.
   */
  draw(rows: readonly string[]): void;
  /** Prints complete lines above the rows; they stay. */
  print(text: string, rows: readonly string[]): void;
  /** Leaves the rows, since another program has written below them. The next rows are drawn at the cursor. */
  leave(): void;
}

export interface Screen {
  write(text: string): void;
  /** The terminal's current size, since it may be resized at any time. */
  readonly columns: number;
  readonly rows: number;
}

export function createLiveArea(screen: Screen): LiveArea {
  /** The lines that were drawn last. */
  let shown: readonly string[] = [];
  let shownAt = 0;

  function write(text: string, wanted: readonly string[]): void {
    const { columns } = screen;
    // The cursor needs the line below. With one more row, every frame would scroll a line away for good.
    const rows = wanted.slice(0, screen.rows - 1);
    if (text === "" && columns === shownAt && isSame(rows, shown)) return;
    // Rows that the terminal wrapped are joined again when it is resized, unless they are erased.
    const erases = text !== "" || columns !== shownAt;
    const frame = renderFrame({ rowsAbove: heightOf(shown, columns), erases, text, rows });
    shown = rows;
    shownAt = columns;
    screen.write(frame);
  }

  return {
    draw: (rows) => write("", rows),
    print: (text, rows) => write(text, rows),
    leave() {
      shown = [];
    },
  };
}

interface Frame {
  /** The number of terminal lines from the cursor up to the area's first row. */
  rowsAbove: number;
  /** True to erase the whole area before drawing. */
  erases: boolean;
  text: string;
  rows: readonly string[];
}

// A terminal without synchronized updates (mode 2026) ignores these.
const beginUpdate = "\u001b[?2026h\u001b[?25l";
const endUpdate = "\u001b[?25h\u001b[?2026l";
// Terminals disagree on the width of text. Without wrapping, a terminal cuts a row that is too wide for it.
const stopWrapping = "\u001b[?7l";
const wrapAgain = "\u001b[?7h";
const eraseBelow = "\u001b[J";
const eraseRestOfLine = "\u001b[K";

/** Renders one frame. Old rows are overwritten in place, unless lines are printed above or the width has changed. */
function renderFrame({ rowsAbove, erases, text, rows }: Frame): string {
  const up = rowsAbove === 0 ? "\r" : `\r\u001b[${rowsAbove}A`;
  // `eraseRestOfLine` after a printed line would erase the last character at the right edge.
  const printed = `${erases ? eraseBelow : ""}${text}`;
  const drawn = rows.map((row) => `${row}${eraseRestOfLine}\n`).join("");
  return `${beginUpdate}${up}${printed}${stopWrapping}${drawn}${wrapAgain}${eraseBelow}${endUpdate}`;
}

/** Returns the number of terminal lines that rows take: a terminal that became narrower has wrapped them. */
function heightOf(rows: readonly string[], columns: number): number {
  return rows.reduce((sum, row) => sum + Math.max(1, Math.ceil(Bun.stringWidth(row) / columns)), 0);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((row, index) => row === other[index]);
}
