import type { Culprit } from "../problems/problem.ts";

/** The start of a physical line's piece in the logical line, and its place in the file. */
export interface Piece {
  offset: number;
  line: number;
  column: number;
}

/** Maps places in a logical line to places in the file. */
export class LineMap {
  private readonly pieces: readonly Piece[];

  constructor(pieces: readonly Piece[]) {
    this.pieces = pieces;
  }

  /** Returns the place of a part of the logical line, up to the end of its first physical line. */
  locate(offset: number, length: number): Culprit {
    const next = this.pieces.findIndex((piece) => piece.offset > offset);
    const piece = this.pieces.at(next < 0 ? -1 : next - 1) ?? { offset: 0, line: 1, column: 1 };
    const room = (this.pieces[next]?.offset ?? Number.POSITIVE_INFINITY) - offset;
    const { line, column } = piece;
    return { line, column: column + offset - piece.offset, length: Math.max(1, Math.min(length, room)) };
  }
}
