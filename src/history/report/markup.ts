import { sanitizeLines } from "../../terminal/terminal-text.ts";
import { visible } from "../../visible.ts";

/** A piece of HTML. Only `html` makes one, so that no text gets into a page unescaped. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

type Part = Markup | string | number | undefined | readonly Part[];

/** Makes HTML of a template. Values are escaped, unless they are HTML already; lists are joined, `undefined` is nothing. */
export function html(parts: TemplateStringsArray, ...values: readonly Part[]): Markup {
  let text = parts[0] ?? "";
  for (const [at, value] of values.entries()) text += textOf(value) + (parts[at + 1] ?? "");
  return new Markup(text);
}

function textOf(value: Part): string {
  if (value === undefined) return "";
  if (value instanceof Markup) return value.text;
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return escaped(visible(value));
  return value.map(textOf).join("");
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "`": "&#96;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"'`]/g, (character) => entities[character] ?? "");
}

/** Returns the lines of a text as a terminal would finally show them, without colours and control characters. */
export function terminalLines(text: string): Markup {
  const shown = sanitizeLines(text, false)
    .split("\n")
    .map((line) => escaped(visible(line.replaceAll("\t", "        "))));
  return new Markup(shown.join("\n"));
}

/** Returns a text, or its beginning with a mark that there is more. */
export function clipped(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** Returns a coordinate with two decimals at most. */
export function coordinate(value: number): number {
  return Math.round(value * 100) / 100;
}
