/** Histories as trees. A case is edges `child<parent`; `*` marks the head. */
import { describe, expect, test } from "bun:test";
import { drawTree } from "../../src/cli/sessions/show.ts";

function draw(edges: string): string {
  const nodes = edges.split(" ").map((edge) => {
    const [, id = "", mark, parent] = /^(\d+)(\*?)(?:<(\d+))?$/.exec(edge) ?? [];
    return { id: Number(id), parent: parent === undefined ? null : Number(parent), isHead: mark === "*" };
  });
  return drawTree(nodes)
    .map(({ graph, node }) => `${graph} ${node.id}`)
    .join("\n");
}

describe("a history is drawn", () => {
  test.each<[string, string, string[]]>([
    ["one image", "1*", ["● 1"]],
    ["a chain goes straight down", "1 2<1 3*<2", ["○ 1", "○ 2", "● 3"]],
    [
      "the side with the head continues the line, even if another one is newer",
      "1 2*<1 3<1",
      ["○ 1", "├─○ 3", "● 2"],
    ],
    ["without a head the newest side continues the line", "1 2<1 3<1", ["○ 1", "├─○ 2", "○ 3"]],
    ["a side has its own chain", "1 2<1 3<2 4*<1", ["○ 1", "├─○ 2", "│ ○ 3", "● 4"]],
    [
      "a side has its own sides",
      "1 2<1 3<2 4<2 5<3 6*<1 7<6",
      ["○ 1", "├─○ 2", "│ ├─○ 4", "│ ○ 3", "│ ○ 5", "● 6", "○ 7"],
    ],
    ["several sides at one place", "1 2<1 3<1 4*<1", ["○ 1", "├─○ 2", "├─○ 3", "● 4"]],
    ["several roots are drawn one below the other", "1 2 3<1 4*<2", ["○ 1", "○ 3", "○ 2", "● 4"]],
    ["an image whose parent is gone is a root", "5<4 6*<5", ["○ 5", "● 6"]],
    ["a side after a side", "1 2<1 3*<1 4<3 5<3 6<5", ["○ 1", "├─○ 2", "● 3", "├─○ 4", "○ 5", "○ 6"]],
  ])("%s", (_, edges, lines) => {
    expect(draw(edges)).toBe(lines.join("\n"));
  });
});

test("a very long chain is drawn in linear time", () => {
  const nodes = Array.from({ length: 50_000 }, (_, id) => ({
    id,
    parent: id === 0 ? null : id - 1,
    isHead: false,
  }));
  const rows = drawTree(nodes);
  expect(rows).toHaveLength(50_000);
  expect(rows.at(-1)).toMatchObject({ graph: "○", node: { id: 49_999 } });
});
