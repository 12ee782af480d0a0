import { type ArgsDef, defineCommand } from "citty";
import { renderTable } from "../../terminal/table.ts";
import type { ArgumentDefinitions } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { openLocalStore } from "../service/connection.ts";

const definitions: ArgumentDefinitions = {
  filter: { type: "string", valueHint: "TEXT", description: "Only sessions whose key contains TEXT" },
};

export const list: Command = {
  definition: defineCommand<ArgsDef>({
    meta: {
      name: "list",
      description: "List the sessions: one for every context that was built, and those of `use` and `run`.",
    },
    args: definitions,
    run: ({ data }) => listSessions(data),
  }),
  examples: [
    ["session list", "all of them"],
    ["session list --filter build:", "the builds' sessions"],
  ],
  agentNote: "It reads bough's own state on this machine; the service is not asked.",
};

function listSessions(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  using store = openLocalStore(runtime, globals);
  const sessions = store.sessions.list(values.text("filter") ?? "");
  printResult(invocation, {
    id: sessions.map(({ key }) => key),
    json: sessions.map((session) => ({ ...session, updatedAt: new Date(session.updatedAt).toISOString() })),
    table: (style) =>
      renderTable(
        ["SESSION", "BRANCHES", "IMAGES", "UPDATED", "CONTEXT"],
        sessions.map(({ key, branches, entries, updatedAt, context }) => [
          key,
          String(branches),
          String(entries),
          { time: updatedAt },
          context ?? "-",
        ]),
        style,
      ),
  });
}
