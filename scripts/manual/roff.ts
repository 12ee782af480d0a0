/** Renders a topic's Markdown as the body of a man page (groff's man macros). */
import { describeLink } from "../../src/cli/help/topics.ts";

const cellEnd = "\u001f";
const rowEnd = "\u001e";

export function renderRoff(markdown: string): string {
  const rendered = Bun.markdown.render(markdown, {
    text: escapeRoff,
    // The page has its own title.
    heading: (text, { level }) =>
      level === 1 ? "" : `\n.${level === 2 ? "SH" : "SS"} ${level === 2 ? text.toUpperCase() : text}\n`,
    paragraph: (text) => `\n.PP\n${lines(text)}\n`,
    list: (items) => `\n${items}`,
    listItem: (text, { ordered, index, start }) =>
      `\n.IP ${ordered ? `${(start ?? 1) + index}.` : "\\(bu"} 4\n${lines(text)}\n`,
    code: (text) => `\n.PP\n.in +4n\n.nf\n${lines(text.trimEnd())}\n.fi\n.in\n`,
    blockquote: (text) => text,
    hr: () => "",
    html: () => "",
    th: (text) => text + cellEnd,
    td: (text) => text + cellEnd,
    tr: (cells) => cells + rowEnd,
    table: renderRows,
    strong: (text) => `\\fB${text}\\fP`,
    emphasis: (text) => `\\fI${text}\\fP`,
    codespan: (text) => `\\fB${text}\\fP`,
    link: (text, { href }) => describeLink(text, breakable(escapeRoff(href).replaceAll("\\-", "-"))),
    image: () => "",
  });
  return `${rendered.replace(/\n{2,}/g, "\n").trim()}\n`;
}

/** Lets a line end within an address. */
function breakable(href: string): string {
  return /^https?:/.test(href) ? href.replace(/(?<=[^/])\/(?=[^/])/g, "/\\:") : href;
}

/** Escapes what has a meaning within a line. */
export function escapeRoff(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-");
}

/** Protects lines that begin as a request does. An empty line of code stays one. */
export function lines(text: string): string {
  return text.replace(/^[.']/gm, "\\&$&").replace(/^$/gm, ".sp");
}

/** A row is a tagged paragraph: its first cell, then the others, with their titles if there are several. */
function renderRows(text: string): string {
  const [titles = [], ...rows] = text
    .split(rowEnd)
    .slice(0, -1)
    .map((row) => row.split(cellEnd).slice(0, -1));
  return rows
    .map(([first = "", ...others]) => {
      const told = others.flatMap((cell, index) =>
        cell === "" ? [] : [others.length > 1 ? `\\fI${titles[index + 1]}\\fP: ${cell}` : cell],
      );
      return `\n.TP\n${lines(first)}\n${told.map(lines).join("\n.br\n")}\n`;
    })
    .join("");
}
