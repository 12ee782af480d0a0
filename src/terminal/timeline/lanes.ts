import type { Span } from "./spans.ts";

/**
 * Distributes spans over as few rows as possible so that none in a row overlap. With `nests` one may also be inside another.
 */
export function assignLanes<Item extends Pick<Span, "start" | "end">>(
  spans: readonly Item[],
  { nests }: { nests: boolean },
): Item[][] {
  const ordered = [...spans].sort((one, other) => one.start - other.start || other.end - one.end);
  /** The spans of each row, and the ends of its open spans, the innermost last. */
  const lanes: { items: Item[]; ends: number[] }[] = [];
  for (const span of ordered) {
    const fits = ({ ends }: { ends: number[] }) => {
      while (ends.length > 0 && (ends.at(-1) ?? 0) <= span.start) ends.pop();
      return ends.length === 0 || (nests && span.end <= (ends.at(-1) ?? 0));
    };
    let lane = lanes.find(fits);
    if (lane === undefined) {
      lane = { items: [], ends: [] };
      lanes.push(lane);
    }
    lane.items.push(span);
    lane.ends.push(span.end);
  }
  return lanes.map(({ items }) => items);
}
