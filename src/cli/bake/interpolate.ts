/** Variables in compose files and in `.env` files: https://docs.docker.com/reference/compose-file/interpolation/. */

export interface InterpolationVariables {
  get(name: string): string | undefined;
  /** Called for a variable without a value, which becomes the empty text. */
  onUnset(name: string): void;
}

/** Thrown for an invalid variable, and for `${NAME:?message}`. The caller adds the location. */
export class InterpolationError extends Error {}

const name = /[A-Za-z_][A-Za-z0-9_]*/y;

const maxDepth = 100;

/**
 * Replaces `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `${NAME:+value}`; `$$` is a dollar sign. `depth`: the number of
 * variables that the text is nested in.
 */
export function interpolate(text: string, variables: InterpolationVariables, depth = 0): string {
  if (!text.includes("$")) return text;
  if (depth > maxDepth) throw new InterpolationError("variables are nested too deeply");
  let result = "";
  for (let at = 0; at < text.length; ) {
    const dollar = text.indexOf("$", at);
    if (dollar < 0) return result + text.slice(at);
    result += text.slice(at, dollar);
    const next = text[dollar + 1];
    const plain = matchAt(dollar + 1);
    if (next === "$") {
      result += "$";
      at = dollar + 2;
    } else if (next === "{") {
      const end = closingBrace(text, dollar + 2);
      if (end === undefined) throw new InterpolationError("invalid variable: its closing brace is missing");
      result += substitute(text.slice(dollar + 2, end), variables, depth + 1);
      at = end + 1;
    } else if (plain !== undefined) {
      result += valueOf(plain, variables);
      at = dollar + 1 + plain.length;
    } else {
      result += "$";
      at = dollar + 1;
    }
  }
  return result;

  function matchAt(index: number): string | undefined {
    name.lastIndex = index;
    return name.exec(text)?.[0];
  }
}

function closingBrace(text: string, from: number): number | undefined {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    if (text[at] === "{" && text[at - 1] === "$") depth += 1;
    if (text[at] === "}") depth -= 1;
    if (depth === 0) return at;
  }
  return undefined;
}

function substitute(expression: string, variables: InterpolationVariables, depth: number): string {
  const [, variable = "", operator, word = ""] =
    /^([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-?+])([\s\S]*))?$/.exec(expression) ?? [];
  if (variable === "") throw new InterpolationError(`invalid variable: \${${expression.slice(0, 40)}}`);
  const value = variables.get(variable);
  const isGiven = operator?.startsWith(":") ? value !== undefined && value !== "" : value !== undefined;
  switch (operator?.at(-1)) {
    case "-":
      return isGiven ? (value ?? "") : interpolate(word, variables, depth);
    case "+":
      return isGiven ? interpolate(word, variables, depth) : "";
    case "?":
      if (isGiven) return value ?? "";
      throw new InterpolationError(
        `required variable ${variable} is missing a value${word === "" ? "" : `: ${interpolate(word, variables, depth)}`}`,
      );
    default:
      return valueOf(variable, variables);
  }
}

function valueOf(variable: string, { get, onUnset }: InterpolationVariables): string {
  const value = get(variable);
  if (value === undefined) onUnset(variable);
  return value ?? "";
}

/**
 * Parses a `.env` file, as compose does: quotes are removed, and variables are replaced, but not in single quotes. Throws an
 * InterpolationError that quotes nothing of the file, which may hold secrets.
 */
export function parseDotEnv(text: string, get: (name: string) => string | undefined): Map<string, string> {
  const found = new Map<string, string>();
  const variables: InterpolationVariables = {
    get: (variable) => found.get(variable) ?? get(variable),
    onUnset: () => undefined,
  };
  const line =
    /^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*(?:[=:][ \t]*(?:'([^']*)'|"((?:\\[\s\S]|[^"\\])*)"|([^\r\n]*)))?[ \t]*(?:#.*)?$|^[ \t]*(?:#.*)?$|^(.+)$/gm;
  const whole = text.replace(/^\uFEFF/, "");
  for (const match of whole.matchAll(line)) {
    const [, key, single, double, bare, invalid] = match;
    const refuse = (problem: string) => {
      const before = whole.slice(0, match.index).split("\n").length;
      return new InterpolationError(`line ${before}: ${problem}`);
    };
    const replaced = (value: string) => {
      try {
        return interpolate(value, variables);
      } catch (error) {
        throw error instanceof InterpolationError
          ? refuse("invalid variable, or one without a value")
          : error;
      }
    };
    if (invalid !== undefined) throw refuse("invalid line");
    if (key === undefined) continue;
    if (single !== undefined) found.set(key, single);
    else if (double !== undefined) found.set(key, replaced(unescape(double)));
    else if (bare !== undefined) found.set(key, replaced(bare.replace(/(^|[ \t])#.*$/, "").trim()));
    else {
      const value = get(key);
      if (value !== undefined) found.set(key, value);
    }
  }
  return found;
}

function unescape(text: string): string {
  return text.replace(/\\([\s\S])/g, (whole, character: string) => {
    if (character === "n") return "\n";
    if (character === "r") return "\r";
    if (character === "t") return "\t";
    return character === "$" ? "$$" : /["\\]/.test(character) ? character : whole;
  });
}
