import { parseOrigin } from "../../builder/state/layer-origin.ts";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { HistoryEntry } from "../../store/sessions.ts";
import type { Store } from "../../store/store.ts";
import { formatCount } from "../../terminal/quantity.ts";
import type { Table, TableStyle } from "../../terminal/table.ts";
import { command, type Surroundings } from "../command-line/command.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { printed, type Result } from "../command-line/result.ts";
import {
  type HistoryReference,
  parseHistoryReference,
  requireHistory,
  requireHistoryEntry,
  sessionKey,
} from "../references/session-argument.ts";
import { isLayerBranch, shortLayer, workingBranch } from "../references/working-branch.ts";
import { openLocalStore } from "../service/connection.ts";
import { type BranchImage, branchResult } from "./branch.ts";

export const show = command({
  name: "show",
  description:
    "Show a session's history as a tree: every image, what made it, and the branches that are at it.",
  args: {
    key: {
      type: "positional",
      completes: "session",
      required: false,
      description:
        "The session's key, such as build:0123456789abcdef (default: -S, else BOUGH_SESSION, else default)",
    },
  },
  run: printed((invocation) => showSession(invocation.values.positionals[0], invocation)),
  examples: [
    ["session show build:0123456789abcdef", "the layers of a context's builds"],
    ["-S work session show", "the session `work`"],
    ["session show work -f json", "as JSON, for other programs"],
  ],
  agentNote: [
    "A filled circle marks the session's current image; `bough use` takes the image of any entry.",
    "KIND commit: not an instruction, but the result of earlier ones, such as files that were staged at the end.",
  ].join("\n"),
});

export function showSession(given: string | undefined, surroundings: Surroundings) {
  const { globals, runtime } = surroundings;
  const key = given ?? sessionKey(surroundings);
  using store = openLocalStore(runtime, globals);
  const history = requireHistory(store, key);
  const branch = store.branches.active(key);
  return {
    id: history.map(({ image }) => image),
    json: {
      key,
      activeBranch: branch,
      history: history.map(({ origin, ...entry }) => {
        const known = parseOrigin(origin);
        const createdAt = new Date(entry.createdAt).toISOString();
        return { ...entry, origin: known === "unknown" ? null : known, createdAt };
      }),
    },
    table: (style: TableStyle) => tableOf(history, branch, style),
  };
}

function tableOf(history: readonly HistoryEntry[], active: string, style: TableStyle): Table {
  const name = (branch: string) => `${shortLayer(branch, style)}${branch === active ? " (active)" : ""}`;
  const rows = drawTree(history.map((entry) => ({ ...entry, isHead: entry.branches.includes(active) })));
  return {
    header: ["ID", "IMAGE", "PARENT", "KIND", "TITLE", "BRANCHES"],
    rows: rows.map(({ graph, node: { id, image, parent, kind, title, branches } }) => [
      { shown: `${graph} ${id}`, value: id },
      { id: image },
      parent === null ? null : String(parent),
      kind,
      title,
      branches.length === 0 ? null : { shown: branches.map(name).join(" "), value: branches.join(" ") },
    ]),
  };
}

export const rollback = command({
  name: "rollback",
  description: "Take the active branch back to the image before the last command.",
  args: {
    steps: {
      type: "positional",
      required: false,
      description:
        "How many images to go back (default: 1); @N goes to entry N of the history, +N goes forward",
    },
  },
  run: printed((invocation) => {
    const [given = "1"] = invocation.values.positionals;
    const reference = parseHistoryReference(given.startsWith("+") ? `@${given}` : given);
    const to = reference === undefined ? positiveInteger(given, "STEPS") : { given, reference };
    return rollBack(to, invocation);
  }),
  examples: [
    ["-S work session rollback", "undo the last `run` or `use`"],
    ["-S work session rollback 3", "the last three, as HEAD~3"],
    ["-S work session rollback @7", "to the entry 7 that `session show` lists"],
  ],
  agentNote:
    "Nothing is lost: `session show` lists what was rolled back, `session branch NAME --from ID` brings it back.",
});

/** @param to the number of images to go back, or an entry of the history */
export function rollBack(
  to: number | { given: string; reference: HistoryReference },
  surroundings: Surroundings,
): Result<BranchImage> {
  const { globals, runtime } = surroundings;
  const key = sessionKey(surroundings);
  using store = openLocalStore(runtime, globals);
  const { branch, entry } =
    typeof to === "number"
      ? goBack(store, key, to)
      : goTo(store, key, requireHistoryEntry(store, key, to.given, to.reference));
  const { image } = entry;
  return branchResult({ session: key, branch, image });
}

/** Moves the active branch to any entry of the session. */
function goTo(store: Store, key: string, entry: HistoryEntry): { branch: string; entry: HistoryEntry } {
  const branch = requireMovable(store, key);
  store.branches.set(key, branch, entry.id);
  return { branch, entry };
}

function requireMovable(store: Store, key: string): string {
  const { branch } = workingBranch(store, key);
  if (!isLayerBranch(branch)) return branch;
  throw new BoughError(`${branch} is a build's layer, which cannot be moved`, {
    hint: wording`Switch to the layer before it instead: ${{ command: "session show", words: [key] }}, then session checkout.`,
  });
}

function goBack(store: Store, key: string, steps: number): { branch: string; entry: HistoryEntry } {
  const entries = new Map(requireHistory(store, key).map((entry) => [entry.id, entry]));
  const branch = requireMovable(store, key);
  const { head } = workingBranch(store, key);
  let entry = head;
  for (let step = 0; step < steps && entry !== undefined; step++) entry = entries.get(entry.parent ?? -1);
  if (entry === undefined) {
    throw new BoughError(
      `branch ${branch} of session ${key} cannot go back ${formatCount(steps, "image")}: it has ${depth(head, entries) || "none"} before its last one`,
      { hint: wording`${{ command: "session show", words: [key] }} shows them.` },
    );
  }
  store.branches.set(key, branch, entry.id);
  return { branch, entry };
}

function depth(head: HistoryEntry | undefined, entries: ReadonlyMap<number, HistoryEntry>): number {
  let count = -1;
  for (let entry = head; entry !== undefined; entry = entries.get(entry.parent ?? -1)) count++;
  return Math.max(0, count);
}

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
 * Draws a tree as lines of text, with parents above their children. A chain goes straight down. At a fork, one child continues
 * straight down: the one that leads to the head, or else to the newest node. The other children come before it, indented.
 */
export function drawTree<Node extends TreeNode>(nodes: readonly Node[]): TreeRow<Node>[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const children = Map.groupBy(nodes, ({ parent }) => (parent !== null && byId.has(parent) ? parent : null));
  const rank = rankAll(nodes, byId);
  const rows: TreeRow<Node>[] = [];

  /** The nodes that are still to be drawn. The walk is depth first, without recursion: a chain may be too long for the call stack. */
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

/** Returns the id of the newest node at or below each node. The head counts as the newest of all. */
function rankAll(nodes: readonly TreeNode[], byId: ReadonlyMap<number, TreeNode>): Map<number, number> {
  const age = ({ id, isHead }: TreeNode) => (isHead ? Number.POSITIVE_INFINITY : id);
  const rank = new Map<number, number>();
  // The loop starts with the newest node, so that each is visited once: the walk up ends at a node that has a rank.
  for (const node of nodes.toSorted((a, b) => (age(a) < age(b) ? 1 : -1))) {
    for (let at: TreeNode | undefined = node; at !== undefined && !rank.has(at.id); ) {
      rank.set(at.id, age(node));
      at = byId.get(at.parent ?? Number.NaN);
    }
  }
  return rank;
}
