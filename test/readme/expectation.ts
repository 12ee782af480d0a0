/** Whether a program has printed what a document shows, where ids, hashes, times and places differ from run to run. */

/** Ids and hashes of the document, and what they were in this run: each stands for one and the same throughout. */
export type Bindings = ReadonlyMap<string, string>;

const varying =
  /([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{12,64}\b)|\b\d+(?:\.\d+)? m?s\b|\d{4}-\d\d-\d\dT[\d:.]+Z/g;
/** Where a reader keeps his state. */
const stateDirectory = /\/[^\s()]*\/\.local\/state\/bough\b/g;

/** The bindings, with those that this output adds; `undefined` where it differs. A line `...` stands for any lines. */
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
  // Two of the document's are not one here.
  return new Set(bound.values()).size === bound.size ? bound : undefined;
}

/** The line with a word in the place of everything that varies. */
function shapeOf(line: string): string {
  return line
    .replace(stateDirectory, "STATE")
    .replace(varying, (_, id) => (id === undefined ? "TIME" : `ID${id.length}`))
    .trimEnd();
}

function idsOf(line: string): string[] {
  return [...line.replace(stateDirectory, "STATE").matchAll(varying)].flatMap(([, id]) => id ?? []);
}
