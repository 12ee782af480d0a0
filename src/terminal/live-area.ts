/**
 * Rows at the bottom of what a terminal shows, drawn over and over, with log lines passing above them. Everything is
 * one write a frame, which leaves the cursor shown, at the beginning of the line below: whenever the process ends,
 * however it ends, the terminal is in order. Of more rows than the terminal has room for, the first are drawn.
 */
interface LiveArea {
  /**
   * Replaces the rows. Each must be narrower than the terminal and hold no control characters but colours and what moves
   * the cursor within its line.
   */
  draw(rows: readonly string[]): void;
  /** Lines (complete, with their line ends) that stay, above the rows. */
  print(text: string, rows: readonly string[]): void;
  /** Somebody else has written below the rows: they stay, and the next are drawn at the cursor. */
  leave(): void;
}

export interface Screen {
  write(text: string): void;
  /** The terminal's width as it is now, like its rows: it may be resized at any time. */
  readonly columns: number;
  readonly rows: number;
}

export function createLiveArea(screen: Screen): LiveArea {
  /** The lines that were drawn last. */
  let shown: readonly string[] = [];
  let shownAt = 0;

  function write(text: string, wanted: readonly string[]): void {
    const { columns } = screen;
    // The cursor takes the line below: one row more, and every frame would push a line up for good.
    const rows = wanted.slice(0, screen.rows - 1);
    if (text === "" && columns === shownAt && isSame(rows, shown)) return;
    // A line that was broken stays one with the next for a terminal that has to join them again, unless it is erased.
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
  /** Rows from the cursor up to the area's first one. */
  rowsAbove: number;
  /** All of it before anything is drawn. */
  erases: boolean;
  text: string;
  rows: readonly string[];
}

// A terminal that knows no synchronized updates (mode 2026) passes over these.
const beginUpdate = "\u001b[?2026h\u001b[?25l";
const endUpdate = "\u001b[?25h\u001b[?2026l";
// Terminals do not agree on how wide a text is: one that finds a row too wide cuts it, rather than taking two lines for it.
const stopWrapping = "\u001b[?7l";
const wrapAgain = "\u001b[?7h";
const eraseBelow = "\u001b[J";
const eraseRestOfLine = "\u001b[K";

/** One frame: the old rows are overwritten in place, unless lines go in between or their width has changed. */
function renderFrame({ rowsAbove, erases, text, rows }: Frame): string {
  const up = rowsAbove === 0 ? "\r" : `\r\u001b[${rowsAbove}A`;
  // Not `eraseRestOfLine` after every line: at the right edge it would take the last character.
  const printed = `${erases ? eraseBelow : ""}${text}`;
  const drawn = rows.map((row) => `${row}${eraseRestOfLine}\n`).join("");
  return `${beginUpdate}${up}${printed}${stopWrapping}${drawn}${wrapAgain}${eraseBelow}${endUpdate}`;
}

/** Lines of the terminal that rows take: one that has become narrower has broken them. */
function heightOf(rows: readonly string[], columns: number): number {
  return rows.reduce((sum, row) => sum + Math.max(1, Math.ceil(Bun.stringWidth(row) / columns)), 0);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((row, index) => row === other[index]);
}
