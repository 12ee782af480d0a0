/** A text in HCL or JSON, and places in it. */
export interface Source {
  /** The file's name, for messages. */
  name: string;
  text: string;
  /** Set for the content of a quoted text in a JSON file: the range of that text in the file. */
  within?: Range;
}

/** A part of a text, by offsets in UTF-16 units. The end is exclusive. */
export interface Range {
  source: Source;
  start: number;
  end: number;
}

/** Returns the range from the start of one to the end of another one of the same text. */
export function between(first: Range, last: Range): Range {
  return { source: first.source, start: first.start, end: last.end };
}

/** Returns the range in the file, also for a range in a quoted text: that of the whole text, if it has escapes. */
export function inFile({ source, start, end }: Range): Range {
  const { within, text } = source;
  if (within === undefined) return { source, start, end };
  const isLiteral = within.end - within.start === text.length + 2;
  return isLiteral
    ? { source: within.source, start: within.start + 1 + start, end: within.start + 1 + end }
    : within;
}

/** The offsets of the lines of each text, computed once: thousands of targets ask for their positions. */
const lineStarts = new WeakMap<Source, readonly number[]>();

/** Returns line and column, both from 1, of an offset. */
export function positionOf(source: Source, offset: number): { line: number; column: number } {
  let starts = lineStarts.get(source);
  if (starts === undefined) {
    starts = [0, ...source.text.matchAll(/\n/g).map(({ index }) => index + 1)];
    lineStarts.set(source, starts);
  }
  let [line, after] = [0, starts.length];
  while (after - line > 1) {
    const middle = (line + after) >> 1;
    if ((starts[middle] ?? 0) <= offset) line = middle;
    else after = middle;
  }
  return { line: line + 1, column: offset - (starts[line] ?? 0) + 1 };
}
