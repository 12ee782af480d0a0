import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { openLocalStore } from "../service/connection.ts";
import { sessionsElsewhere } from "./elsewhere.ts";

export const list = command({
  name: "list",
  description: "List the sessions: one for every context that was built, and those of `use` and `run`.",
  args: {
    filter: { type: "string", valueHint: "TEXT", description: "Only sessions whose key contains TEXT" },
  },
  run: listSessions,
  examples: [
    ["session list", "all of them"],
    ["session list --filter build:", "the builds' sessions"],
  ],
  agentNote: "It reads bough's own state on this machine; the service is not asked.",
});

function listSessions(invocation: Invocation): void {
  const { values, globals, runtime, log } = invocation;
  using store = openLocalStore(runtime, globals);
  const filter = values.text("filter") ?? "";
  const sessions = store.sessions.list(filter);
  const others = sessions.length === 0 ? sessionsElsewhere(store, filter, runtime) : [];
  if (others.length > 0)
    log.info(
      `no sessions here, but there are some for ${others.join(", ")}: --url, --profile or --local choose another service`,
    );
  printResult(invocation, {
    id: sessions.map(({ key }) => key),
    json: sessions.map((session) => ({ ...session, updatedAt: new Date(session.updatedAt).toISOString() })),
    table: () => ({
      header: ["SESSION", "BRANCHES", "IMAGES", "UPDATED", "CONTEXT"],
      rows: sessions.map(({ key, branches, entries, updatedAt, context }) => [
        key,
        String(branches),
        String(entries),
        { time: updatedAt },
        context,
      ]),
    }),
  });
}
