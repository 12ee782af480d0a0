/**
 * Returns the candidate most similar to `word`, or `undefined` if none is similar enough: one error for every three letters is
 * allowed, at least one. Case is ignored, as are dashes at the start, so that options are measured by their names. Two swapped
 * neighbours are one error. Another first letter counts twice: hardly anybody mistypes it, and `--gpus` is not `--cpus`.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > maxLength) return undefined;
  const wanted = nameOf(word);
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const name = nameOf(candidate);
    const allowed = Math.max(1, Math.floor(Math.min(wanted.length, name.length) / 3));
    // The difference in length alone is too large. This also avoids comparing very long words.
    if (Math.abs(name.length - wanted.length) > allowed) continue;
    const distance = editDistance(wanted, name);
    if (distance <= allowed && distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function nameOf(word: string): string {
  return word.toLowerCase().replace(/^--?/, "");
}

/** Longer words are not compared, since that takes time by the product of their lengths. */
const maxLength = 100;

/** Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const cost = from[row - 1] === to[column - 1] ? 0 : row === 1 && column === 1 ? 2 : 1;
      let distance = Math.min(
        at(previous, column) + 1,
        at(current, column - 1) + 1,
        at(previous, column - 1) + cost,
      );
      const isSwap = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (row > 1 && column > 1 && isSwap) distance = Math.min(distance, at(beforePrevious, column - 2) + 1);
      current.push(distance);
    }
    beforePrevious = previous;
    previous = current;
  }
  return at(previous, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
