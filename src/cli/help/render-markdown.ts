/** Renders a topic for people: on a terminal with colours, in a pipe as plain text. */
import { fitWidths } from "../../terminal/fit.ts";

interface Look {
  columns: number;
  hasColor: boolean;
}

/** End a cell and a row until the table is laid out; no text has these. */
const cellEnd = "\u001f";
const rowEnd = "\u001e";
const gap = 2;
const codeIndent = "    ";

export function renderMarkdown(markdown: string, { columns, hasColor }: Look): string {
  const paint = (codes: readonly [number, number], text: string) =>
    hasColor ? `\u001b[${codes[0]}m${text}\u001b[${codes[1]}m` : text;
  const bold = (text: string) => paint([1, 22], text);
  const rendered = Bun.markdown.render(markdown, {
    heading: (text, { level }) => `${bold(level === 1 ? text.toUpperCase() : text)}\n\n`,
    paragraph: (text) => `${wrap(text, columns)}\n\n`,
    list: (items) => `${items.trimEnd()}\n\n`,
    listItem: (text, { ordered, index, start }) => {
      const marker = ordered ? `${(start ?? 1) + index}. ` : "- ";
      return `${hang(marker, wrap(text, columns - marker.length))}\n`;
    },
    code: (text) => `${layOutCode(text.trimEnd(), columns)}\n\n`,
    blockquote: (text) => `${hang("  ", text.trimEnd())}\n\n`,
    hr: () => `${"-".repeat(Math.min(columns, 40))}\n\n`,
    html: () => "",
    th: (text) => text + cellEnd,
    td: (text) => text + cellEnd,
    tr: (cells) => cells + rowEnd,
    table: (rows) => `${layOut(rows, columns, bold)}\n\n`,
    strong: bold,
    emphasis: (text) => paint([4, 24], text),
    codespan: (text) => (hasColor ? paint([36, 39], text) : `\`${text}\``),
    link: (text, { href }) => describeLink(text, href),
    image: () => "",
  });
  return `${rendered.replace(/[ \t]+$/gm, "").trimEnd()}\n`;
}

/** A link to another topic names the command that shows it. One within the topic is only text. */
export function describeLink(text: string, href: string): string {
  const [, topic] = /^(?:[\w./]*\/)?([a-z]+)\.md(?:#.*)?$/.exec(href) ?? [];
  if (topic !== undefined) {
    const line = `bough help ${topic}`;
    return Bun.stripANSI(text).includes(line) ? text : `${text} (${line})`;
  }
  return href.startsWith("#") || text === href ? text : `${text} (${href})`;
}

/** Indents code. If lines with comments at their ends are too long, all comments of the block go above: commands stay whole. */
function layOutCode(text: string, columns: number): string {
  const width = columns - codeIndent.length;
  const lines = text.split("\n").map((line) => {
    const [, command = line, comment] = /^(.*\S) +# (.*)$/.exec(line) ?? [];
    return { line, command, comment };
  });
  const areAbove = lines.some(({ line, comment }) => comment !== undefined && line.length > width);
  return lines
    .flatMap(({ line, command, comment }) =>
      areAbove && comment !== undefined
        ? [
            ...wrap(comment, width - 2)
              .split("\n")
              .map((part) => `# ${part}`),
            command,
          ]
        : line,
    )
    .map((line) => (line === "" ? "" : codeIndent + line))
    .join("\n");
}

function wrap(text: string, columns: number): string {
  return Bun.wrapAnsi(text.replaceAll("\n", " ").trim(), Math.max(columns, 1), { hard: false, trim: true });
}

function hang(beginning: string, text: string): string {
  return beginning + text.replaceAll("\n", `\n${" ".repeat(beginning.length)}`);
}

/** Lays out a table whose cells are wrapped. A table without a header row that says something has none. */
function layOut(text: string, columns: number, bold: (text: string) => string): string {
  const rows = text
    .split(rowEnd)
    .slice(0, -1)
    .map((row) => row.split(cellEnd).slice(0, -1));
  const [header = [], ...body] = rows;
  const widthsOf = (column: number) => rows.map((row) => Bun.stringWidth(row[column] ?? ""));
  const natural = header.map((_, column) => Math.max(...widthsOf(column)));
  const titles = header.map((title) => Bun.stripANSI(title));
  const widths = fitWidths(natural, { header: titles, isId: titles.map(() => false) }, columns);
  const lines = (row: readonly string[]) => {
    const cells = row.map((cell, column) => wrap(cell, widths[column] ?? columns).split("\n"));
    const height = Math.max(...cells.map(({ length }) => length));
    return Array.from({ length: height }, (_, line) =>
      cells
        .map((cell, column) => padTo(cell[line] ?? "", widths[column] ?? 0))
        .join(" ".repeat(gap))
        .trimEnd(),
    ).join("\n");
  };
  const isTall = body.some((row) => lines(row).includes("\n"));
  const shown = body.map(lines).join(isTall ? "\n\n" : "\n");
  if (titles.every((title) => title === "")) return shown;
  return `${lines(header.map((title) => bold(title.toUpperCase())))}\n${shown}`;
}

function padTo(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - Bun.stringWidth(text)));
}
