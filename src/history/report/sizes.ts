import { formatBytes } from "../../terminal/quantity.ts";
import { clipped, coordinate, html, type Markup } from "./markup.ts";
import type { DirectorySize, ImageSizes } from "./report-data.ts";
import { squarify } from "./squarify.ts";

/** Renders the layers and directories that make the image large. */
export function renderSizes(sizes: ImageSizes | undefined): Markup {
  if (sizes === undefined)
    return html`<section aria-labelledby="sizes"><h2 id="sizes">What makes the image large</h2><p>The sizes are not known: there is no image, or the service does not report the files of its layers.</p></section>`;
  const { bytes, hiddenBytes, layers, root } = sizes;
  const largest = Math.max(...layers.map((layer) => layer.bytes), 1);
  return html`<section aria-labelledby="sizes"><h2 id="sizes">What makes the image large</h2>
<p>${formatBytes(bytes)} in ${layers.length} layers${hiddenBytes > bytes / 100 ? html`, of which <b>${formatBytes(hiddenBytes)} are wasted</b>: later layers change or delete them` : undefined}. Files as they are, not compressed.</p>
${renderMap(root)}
<div class="two"><div><h3>By directory</h3><ul class="tree">${root.children.map((child) => renderDirectory(child, "", root.bytes))}</ul></div>
<div><h3>By layer</h3><ol class="layers">${layers.map((layer, at) => html`<li><span class="l${at % hues}"><svg class="m" height="10" width="100%" aria-hidden="true"><rect class="f" width="${coordinate((layer.bytes / largest) * 100)}%" height="10" rx="2"/></svg></span><span class="num">${formatBytes(layer.bytes)}</span><code>${layer.isBase ? "base image" : clipped(layer.instruction, 140)}</code>${layer.hiddenBytes > 0 ? html`<small>${formatBytes(layer.hiddenBytes)} of it wasted</small>` : undefined}</li>`)}</ol></div></div></section>`;
}

/** The number of colours for layers, which the list of layers has, too. */
const hues = 6;

function renderDirectory(directory: DirectorySize, above: string, total: number): Markup {
  const path = `${above}/${directory.name}`;
  const share = (directory.bytes / Math.max(total, 1)) * 100;
  const row = html`<code>${path}${directory.isDirectory ? "/" : ""}</code><svg class="m" height="10" width="100%" aria-hidden="true"><rect class="f" width="${coordinate(share)}%" height="10" rx="2"/></svg><span class="num">${formatBytes(directory.bytes)}</span><span class="num">${Math.round(share)}%</span>`;
  if (directory.children.length === 0) return html`<li><div class="row">${row}</div></li>`;
  return html`<li><details${above === "" && share > 50 ? openAttribute : undefined}><summary class="row">${row}</summary><ul>${directory.children.map((child) => renderDirectory(child, path, total))}</ul></details></li>`;
}

const openAttribute = html` open`;

const mapWidth = 960;
const mapHeight = 240;

/** Renders a treemap of two levels of directories: areas are sizes, and the colour is that of the layer that has most of it. */
function renderMap(root: DirectorySize): Markup | undefined {
  if (root.bytes === 0) return undefined;
  const places = squarify(root.children, { x: 0, y: 0, width: mapWidth, height: mapHeight });
  return html`<svg class="map" viewBox="0 0 ${mapWidth} ${mapHeight}" role="img" aria-label="Map of the image's directories by size. The list below has the same sizes.">${places.map(
    ({ item, area }) => {
      const inner = { x: area.x + 2, y: area.y + 20, width: area.width - 4, height: area.height - 22 };
      const parts = inner.width > 30 && inner.height > 16 ? squarify(item.children, inner) : [];
      return html`<g class="l${mainLayer(item) % hues}"><title>/${item.name}: ${formatBytes(item.bytes)}</title>${box(area, "")}${label(`/${item.name}`, area, 14)}${parts.map(
        (part) =>
          html`<g class="l${mainLayer(part.item) % hues}"><title>/${item.name}/${part.item.name}: ${formatBytes(part.item.bytes)}</title>${box(part.area, "in")}${part.area.height > 18 ? label(part.item.name, part.area, 13) : undefined}</g>`,
      )}</g>`;
    },
  )}</svg>`;
}

interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

function box({ x, y, width, height }: Area, kind: string): Markup {
  return html`<rect class="${kind === "" ? "box" : "box in"}" x="${coordinate(x + 1)}" y="${coordinate(y + 1)}" width="${coordinate(Math.max(0, width - 2))}" height="${coordinate(Math.max(0, height - 2))}" rx="3"/>`;
}

/** Renders a label if it fits. A character is about 7 units wide. */
function label(text: string, { x, y, width }: Area, down: number): Markup | undefined {
  const room = Math.floor((width - 10) / 7.2);
  if (room < 3) return undefined;
  return html`<text x="${coordinate(x + 6)}" y="${coordinate(y + down + 1)}">${clipped(text, room)}</text>`;
}

/** Returns the number of the layer that has most of a directory. */
function mainLayer({ byLayer }: DirectorySize): number {
  const [main] = [...byLayer].sort(([, one], [, other]) => other - one);
  return main?.[0] ?? 0;
}
