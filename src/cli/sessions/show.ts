import type { HistoryEntry } from "../../store/sessions.ts";
import type { Table, TableStyle } from "../../terminal/table.ts";
import { drawTree } from "../../terminal/tree.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { requireHistory, sessionKey } from "../references/session-argument.ts";
import { shortLayer } from "../references/working-branch.ts";
import { openLocalStore } from "../service/connection.ts";

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
  run: showSession,
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

function showSession(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  const key = values.positionals[0] ?? sessionKey(invocation);
  using store = openLocalStore(runtime, globals);
  const history = requireHistory(store, key);
  const branch = store.branches.active(key);
  printResult(invocation, {
    id: history.map(({ image }) => image),
    json: {
      key,
      activeBranch: branch,
      history: history.map((entry) => ({ ...entry, createdAt: new Date(entry.createdAt).toISOString() })),
    },
    table: (style) => tableOf(history, branch, style),
  });
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
