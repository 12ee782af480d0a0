/** A node of a tree. A node whose parent is not in the list is a root. */
interface TreeNode {
  id: number;
  parent: number | null;
  isHead: boolean;
}

interface TreeRow<Node extends TreeNode> {
  /** The drawing to the left of the node, with its mark. */
  graph: string;
  node: Node;
}

/**
 * Draws a tree as lines of text, parents above their children. A chain goes straight down. At a fork, the branch to the head, or
 * else to the newest node, continues straight, and the others come before it, indented.
 */
export function drawTree<Node extends TreeNode>(nodes: readonly Node[]): TreeRow<Node>[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const children = new Map<number | null, Node[]>();
  for (const node of nodes) {
    const parent = node.parent !== null && byId.has(node.parent) ? node.parent : null;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [node]);
    else siblings.push(node);
  }
  const rank = rankAll(nodes, byId);
  const rows: TreeRow<Node>[] = [];

  /** Walks depth first without recursion: a chain may be too long for the call stack. */
  const stack: { node: Node; indent: string; lead: string }[] = [];
  const push = (siblings: readonly Node[], indent: string, isRoot: boolean) => {
    const ordered = siblings.toSorted((a, b) => ((rank.get(a.id) ?? 0) < (rank.get(b.id) ?? 0) ? -1 : 1));
    for (const [index, node] of ordered.toReversed().entries()) {
      const goesOn = isRoot || index === 0;
      stack.push(goesOn ? { node, indent, lead: "" } : { node, indent: `${indent}│ `, lead: "├─" });
    }
  };
  push(children.get(null) ?? [], "", true);
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { node, indent, lead } = next;
    const place = lead === "" ? indent : indent.slice(0, -lead.length) + lead;
    rows.push({ graph: `${place}${node.isHead ? "●" : "○"}`, node });
    push(children.get(node.id) ?? [], indent, false);
  }
  return rows;
}

/** Returns the newest node at or below each node. The head counts as the newest of all. */
function rankAll(nodes: readonly TreeNode[], byId: ReadonlyMap<number, TreeNode>): Map<number, number> {
  const age = ({ id, isHead }: TreeNode) => (isHead ? Number.POSITIVE_INFINITY : id);
  const rank = new Map<number, number>();
  // Starts with the newest, so that each node is visited once: the walk up ends at a node that has a rank.
  for (const node of nodes.toSorted((a, b) => (age(a) < age(b) ? 1 : -1))) {
    for (let at: TreeNode | undefined = node; at !== undefined && !rank.has(at.id); ) {
      rank.set(at.id, age(node));
      at = byId.get(at.parent ?? Number.NaN);
    }
  }
  return rank;
}
