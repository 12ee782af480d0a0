import type { Culprit } from "../problems/problem.ts";

/** Where a piece of a physical line landed in the logical line. */
export interface Piece {
  offset: number;
  line: number;
  column: number;
}

/** Finds what stands in a logical line again in the file. */
export class LineMap {
  private readonly pieces: readonly Piece[];

  constructor(pieces: readonly Piece[]) {
    this.pieces = pieces;
  }

  /** Where a stretch of the logical line starts; what of it goes on in the next physical line is left out. */
  locate(offset: number, length: number): Culprit {
    const next = this.pieces.findIndex((piece) => piece.offset > offset);
    const piece = this.pieces.at(next < 0 ? -1 : next - 1) ?? { offset: 0, line: 1, column: 1 };
    const room = (this.pieces[next]?.offset ?? Number.POSITIVE_INFINITY) - offset;
    const { line, column } = piece;
    return { line, column: column + offset - piece.offset, length: Math.max(1, Math.min(length, room)) };
  }
}
