/** YAML of compose files, with their tags `!reset` and `!override`. */
import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseAllDocuments } from "yaml";
import { type FileLocation, locationError } from "./file-location.ts";
import { requireFinite } from "./target.ts";

export interface ComposeDocument {
  /** What the document says, without the values that `!reset` marks. */
  root: unknown;
  /** Paths that `!reset` and `!override` mark: values of earlier files are dropped there rather than merged. */
  replaced: readonly Path[];
}

/** Keys of maps, and positions in lists. */
type Path = readonly (string | number)[];

/** Parses the documents of a file. Throws a usage BoughError that quotes nothing of the text. */
export function parseComposeYaml(text: string, location: FileLocation): ComposeDocument[] {
  const lineCounter = new LineCounter();
  const documents = parseAllDocuments(text, { merge: true, prettyErrors: false, lineCounter });
  return [...documents].map((document) => {
    const [error] = document.errors;
    if (error !== undefined) {
      const { line } = lineCounter.linePos(error.pos[0]);
      const reason = error.code.toLowerCase().replaceAll("_", " ");
      throw locationError({ file: `${location.file}:${line}`, path: [] }, `invalid YAML: ${reason}`);
    }
    let root: unknown;
    try {
      root = document.toJS();
    } catch (cause) {
      // The parser also limits how far aliases may expand.
      throw locationError(
        location,
        "invalid YAML: an alias without its anchor, or too many",
        undefined,
        cause,
      );
    }
    requireFinite(root, { file: location.file, path: [] });
    const tagged = findTagged(document, location);
    return { root: without(root, tagged.reset), replaced: [...tagged.reset, ...tagged.override] };
  });
}

const maxVisits = 100_000;
const maxDepth = 1000;

function findTagged(document: Document, location: FileLocation): { reset: Path[]; override: Path[] } {
  const found = { reset: [] as Path[], override: [] as Path[] };
  let visits = 0;
  const resolve = (node: unknown) => (isAlias(node) ? node.resolve(document) : node);

  function visit(given: unknown, path: Path, depth: number): void {
    visits += 1;
    if (visits > maxVisits || depth > maxDepth)
      throw locationError(location, "it is nested too deeply, or too large");
    const node = resolve(given);
    const tag = isNode(node) ? node.tag : undefined;
    if (tag === "!reset") found.reset.push(path);
    else if (tag === "!override") found.override.push(path);
    else if (isSeq(node))
      for (const [at, item] of node.items.entries()) visit(item, [...path, at], depth + 1);
    else if (isMap(node))
      for (const { key, value } of node.items)
        visitPair(isScalar(key) ? String(key.value) : "", value, path, depth + 1);
  }

  function visitPair(name: string, value: unknown, path: Path, depth: number): void {
    if (name !== "<<") {
      visit(value, [...path, name], depth);
      return;
    }
    // The keys of a merged map become keys of this one.
    const merged = resolve(value);
    for (const each of isSeq(merged) ? merged.items : [merged]) visit(each, path, depth);
  }

  visit(document.contents, [], 0);
  return found;
}

/** Returns a value of earlier files without what a later one replaces. Lists are replaced as a whole. */
export function withoutReplaced<Value>(value: Value, replaced: readonly Path[]): Value {
  return without(
    value,
    replaced.filter((path) => path.every((key) => typeof key === "string")),
  );
}

function without<Value>(value: Value, paths: readonly Path[]): Value;
function without(value: unknown, paths: readonly Path[]): unknown {
  if (paths.length === 0 || typeof value !== "object" || value === null) return value;
  const rest = (key: string | number) =>
    paths.filter(([first]) => first === key).map((path) => path.slice(1));
  const kept = <Key extends string | number>([key, each]: [Key, unknown]): [Key, unknown][] => {
    const below = rest(key);
    return below.some((path) => path.length === 0) ? [] : [[key, without(each, below)]];
  };
  if (Array.isArray(value)) return [...value.entries()].flatMap(kept).map(([, each]) => each);
  return Object.fromEntries(Object.entries(value).flatMap(kept));
}
