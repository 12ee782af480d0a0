import { type Place, placeError } from "./place.ts";
import { isMap, readText } from "./target.ts";

/** Returns the value of a variable. Throws if there is none. */
export type Lookup = (name: string, place: Place) => unknown;

/** A variable, and what is in it: `item`, `item.name`, `items[0]`. */
const reference = /^\s*([A-Za-z_][\w-]*)((?:\.[\w-]+|\[(?:\d+|"[^"]*")\])*)\s*$/;
const marks = /\$\$\{|%%\{|\$\{((?:[^{}"]|"[^"]*")*)\}|\$\{|%\{/g;

/**
 * Replaces `${VARIABLE}` in the texts of a JSON value, also in keys. A text that is only a variable becomes its value, which may be
 * a list. Expressions of HCL are refused.
 */
export function expand(value: unknown, lookUp: Lookup, place: Place): unknown {
  if (typeof value === "string") return expandText(value, lookUp, place);
  if (Array.isArray(value)) return value.map((each) => expand(each, lookUp, place));
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      const at = { ...place, path: [...place.path, key] };
      return [String(expandText(key, lookUp, at)), expand(each, lookUp, at)];
    }),
  );
}

function expandText(text: string, lookUp: Lookup, place: Place): unknown {
  const [, whole] = /^\$\{([^{}]*)\}$/.exec(text) ?? [];
  if (whole !== undefined) return evaluate(whole, lookUp, place);
  return text.replace(marks, (mark: string, expression: string | undefined) => {
    if (mark === "$${" || mark === "%%{") return mark.slice(1);
    if (expression === undefined) throw unsupported(text, place);
    return readText(evaluate(expression, lookUp, place), place);
  });
}

function evaluate(expression: string, lookUp: Lookup, place: Place): unknown {
  const [, name, path = ""] = reference.exec(expression) ?? [];
  if (name === undefined) throw unsupported(`\${${expression}}`, place);
  let value = lookUp(name, place);
  for (const [, dotted, index, quoted] of path.matchAll(/\.([\w-]+)|\[(\d+)\]|\["([^"]*)"\]/g)) {
    const key = dotted ?? index ?? quoted ?? "";
    const isThere = typeof value === "object" && value !== null && Object.hasOwn(value, key);
    if (!isThere) throw placeError(place, `\${${expression}}: there is no ${key}`);
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function unsupported(text: string, place: Place) {
  return placeError(
    place,
    `unsupported expression: ${text}`,
    "bough replaces variables (${NAME}), and calls no functions. `docker buildx bake --print` writes a file without expressions, which `bough bake -f -` reads.",
  );
}
