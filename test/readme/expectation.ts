/** Compares a program's output with what a document shows, although ids, hashes, times and paths differ between runs. */

/** The value in this run of each id and hash of the document. It stays the same throughout the document. */
export type Bindings = ReadonlyMap<string, string>;

const varying =
  /([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{12,64}\b)|\b\d+(?:\.\d+)? m?s\b|\d{4}-\d\d-\d\dT[\d:.]+Z/g;
/** The state directory of a reader. */
const stateDirectory = /\/[^\s()]*\/\.local\/state\/bough\b/g;

/** Returns the bindings with those of this output, or `undefined` if it differs. A line `...` matches any lines. */
export function matchOutput(
  expected: readonly string[],
  actual: readonly string[],
  bindings: Bindings,
): Bindings | undefined {
  const [line, ...rest] = expected;
  if (line === undefined) return actual.length === 0 ? bindings : undefined;
  if (line === "...") {
    for (let skipped = 0; skipped <= actual.length; skipped++) {
      const found = matchOutput(rest, actual.slice(skipped), bindings);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  const [first, ...others] = actual;
  const bound = first === undefined ? undefined : matchLine(line, first, bindings);
  return bound === undefined ? undefined : matchOutput(rest, others, bound);
}

function matchLine(expected: string, actual: string, bindings: Bindings): Bindings | undefined {
  if (shapeOf(expected) !== shapeOf(actual)) return undefined;
  const bound = new Map(bindings);
  const found = idsOf(actual);
  for (const [index, id] of idsOf(expected).entries()) {
    const value = found[index] ?? "";
    if ((bound.get(id) ?? value) !== value) return undefined;
    bound.set(id, value);
  }
  // Two ids of the document must not be one here.
  return new Set(bound.values()).size === bound.size ? bound : undefined;
}

/** Replaces everything that varies in a line by a word. */
function shapeOf(line: string): string {
  return line
    .replace(stateDirectory, "STATE")
    .replace(varying, (_, id) => (id === undefined ? "TIME" : `ID${id.length}`))
    .trimEnd();
}

function idsOf(line: string): string[] {
  return [...line.replace(stateDirectory, "STATE").matchAll(varying)].flatMap(([, id]) => id ?? []);
}
