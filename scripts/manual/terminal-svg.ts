/** Draws what a terminal shows as an SVG image, which README.md embeds. */

/** Of a character, in the image's units. */
const charWidth = 8.43;
const lineHeight = 19;
const margin = 16;
const fontSize = 14;
const fonts = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace";

const background = "#0d1117";
const foreground = "#e6edf3";
/** Of the SGR parameters 30 to 37. */
const colors = ["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4"];

interface Style {
  isBold: boolean;
  isDim: boolean;
  color: string | undefined;
}

const plain: Style = { isBold: false, isDim: false, color: undefined };

/** `text` has the SGR sequences of its colours, which may last over several lines, and no other control sequences. */
export function drawTerminal(title: string, text: string, columns: number): string {
  const lines = text.split("\n");
  const width = Math.ceil(columns * charWidth + 2 * margin);
  const height = Math.ceil(lines.length * lineHeight + 2 * margin);
  let style = plain;
  const drawn = lines.map((line, index) => {
    const spans: string[] = [];
    for (const [, sequence, characters] of line.matchAll(/\u001b\[([\d;]*)m|([^\u001b]+)/g)) {
      if (sequence !== undefined) style = change(style, sequence);
      else if (characters !== undefined) spans.push(drawSpan(characters, style));
    }
    const y = margin + index * lineHeight + fontSize;
    return `<text x="${margin}" y="${y}" xml:space="preserve">${spans.join("")}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<title>${escape(title)}</title>`,
    `<rect width="100%" height="100%" rx="8" fill="${background}"/>`,
    `<g font-family="${fonts}" font-size="${fontSize}" fill="${foreground}">`,
    ...drawn,
    "</g>",
    "</svg>\n",
  ].join("\n");
}

function drawSpan(text: string, { isBold, isDim, color }: Style): string {
  const attributes = [
    isBold ? ' font-weight="bold"' : "",
    isDim ? ' fill-opacity="0.6"' : "",
    color === undefined ? "" : ` fill="${color}"`,
  ].join("");
  return attributes === "" ? escape(text) : `<tspan${attributes}>${escape(text)}</tspan>`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function change(style: Style, sequence: string): Style {
  let changed = style;
  for (const parameter of sequence.split(";").map(Number)) changed = changeBy(changed, parameter);
  return changed;
}

function changeBy(style: Style, parameter: number): Style {
  if (parameter === 0) return plain;
  if (parameter === 1) return { ...style, isBold: true };
  if (parameter === 2) return { ...style, isDim: true };
  if (parameter === 22) return { ...style, isBold: false, isDim: false };
  if (parameter === 39) return { ...style, color: undefined };
  if (parameter >= 30 && parameter <= 37) return { ...style, color: colors[parameter - 30] };
  return style;
}
