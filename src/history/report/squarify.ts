interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Placed<Item> {
  item: Item;
  area: Area;
}

/**
 * Divides a rectangle among items by their bytes, the largest first, in rows along its shorter side whose parts are as square as
 * can be (Bruls, Huizing and van Wijk, Squarified Treemaps).
 */
export function squarify<Item extends { bytes: number }>(items: readonly Item[], area: Area): Placed<Item>[] {
  const sized = items.filter(({ bytes }) => bytes > 0);
  const total = sized.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total === 0 || area.width <= 0 || area.height <= 0) return [];
  const scale = (area.width * area.height) / total;
  const placed: Placed<Item>[] = [];
  let left = area;
  let row: Item[] = [];
  for (const item of sized) {
    const side = Math.min(left.width, left.height);
    if (row.length > 0 && worst([...row, item], side, scale) > worst(row, side, scale)) {
      left = layRow(row, left, scale, placed);
      row = [];
    }
    row.push(item);
  }
  layRow(row, left, scale, placed);
  return placed;
}

/** Returns the greatest ratio of two sides in a row of that length. */
function worst(row: readonly { bytes: number }[], side: number, scale: number): number {
  const sizes = row.map(({ bytes }) => bytes * scale);
  const sum = sizes.reduce((all, size) => all + size, 0);
  return Math.max(
    ((side * side) / sum ** 2) * Math.max(...sizes),
    sum ** 2 / (side * side * Math.min(...sizes)),
  );
}

/** Places a row along the shorter side. Returns what is left. */
function layRow<Item extends { bytes: number }>(
  row: readonly Item[],
  { x, y, width, height }: Area,
  scale: number,
  placed: Placed<Item>[],
): Area {
  const sum = row.reduce((all, { bytes }) => all + bytes * scale, 0);
  const isUpright = width >= height;
  const thickness = sum / Math.max(isUpright ? height : width, 1e-9);
  let at = isUpright ? y : x;
  for (const item of row) {
    const length = (item.bytes * scale) / Math.max(thickness, 1e-9);
    placed.push({
      item,
      area: isUpright
        ? { x, y: at, width: thickness, height: length }
        : { x: at, y, width: length, height: thickness },
    });
    at += length;
  }
  return isUpright
    ? { x: x + thickness, y, width: width - thickness, height }
    : { x, y: y + thickness, width, height: height - thickness };
}
