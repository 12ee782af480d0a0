import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { BoughError } from "../../errors.ts";
import { openStore, type Store } from "../../store/store.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation, type Surroundings } from "../command-line/command.ts";
import { printed, printResult } from "../command-line/result.ts";
import { removeContextsOf } from "../contexts/kept-contexts.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/runtime.ts";
import { requireHistory } from "../references/session-argument.ts";
import { openLocalStore } from "../service/connection.ts";
import { findRunningBuilds } from "./running-builds.ts";

export const list = command({
  name: "list",
  description: "List the sessions: one for every context that was built, and those of `use` and `run`.",
  args: {
    filter: { type: "string", valueHint: "TEXT", description: "Only sessions whose key contains TEXT" },
  },
  run: printed((invocation) => listSessions(invocation.values.text("filter") ?? "", invocation)),
  examples: [
    ["session list", "all of them"],
    ["session list --filter build:", "the builds' sessions"],
  ],
  agentNote: "It reads bough's own state on this machine; the service is not asked.",
});

/** Returns the sessions whose key contains `filter`. */
export function listSessions(filter: string, { globals, runtime, log }: Surroundings) {
  using store = openLocalStore(runtime, globals);
  const sessions = store.sessions.list(filter);
  const others = sessions.length === 0 ? sessionsElsewhere(store, filter, runtime) : [];
  if (others.length > 0)
    log.info(
      `no sessions here, but there are some for ${others.join(", ")}: --url, --profile or --local choose another service`,
    );
  return {
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
  };
}

/** The maximum number of other services whose sessions are counted. */
const maxServices = 20;

/** Returns the hosts of other services for which this machine has sessions, with their number. */
function sessionsElsewhere(
  { path }: Pick<Store, "path">,
  filter: string,
  { clock }: Pick<Runtime, "clock">,
): string[] {
  const directory = dirname(path);
  if (!existsSync(directory)) return [];
  const others = readdirSync(directory).filter((name) => name.endsWith(".db") && name !== basename(path));
  return others.slice(0, maxServices).flatMap((name) => {
    using store = openStore(join(directory, name), clock);
    const count = store.sessions.list(filter).length;
    const host = name === "embedded.db" ? "the embedded engine" : name.replace(/-[0-9a-f]{12}\.db$/, "");
    return count === 0 ? [] : `${host} (${count})`;
  });
}

export const deleteCommand = command({
  name: "delete",
  description: "Delete sessions with their history and branches; images stay.",
  args: {
    key: {
      type: "positional",
      completes: "session",
      required: true,
      multiple: true,
      description: "Keys of sessions",
    },
  },
  run: deleteSessions,
  examples: [
    ["session delete work", "the session `work`"],
    ["session delete build:0123456789abcdef", "a build's session: its next build starts without a cache"],
  ],
  agentNote:
    "It does not ask for confirmation. The service's images stay; `bough engine prune` frees the engine's.",
});

function deleteSessions(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  const keys = [...new Set(values.positionals)];
  using store = openLocalStore(runtime, globals);
  // If a session does not exist, none is deleted.
  for (const key of keys) requireHistory(store, key);
  const { isBuilding } = findRunningBuilds(stateDirectory(runtime));
  for (const key of keys)
    if (isBuilding(key))
      throw new BoughError(`session ${visible(key)} is in use: a build is running in it`, {
        hint: "Delete it when the build has ended.",
      });
  for (const key of keys) {
    store.sessions.delete(key);
    removeContextsOf(key, stateDirectory(runtime));
  }
  printResult(invocation, {
    id: keys,
    json: keys.map((key) => ({ deleted: key })),
    table: () => keys.map((key) => `${visible(key)}\n`).join(""),
  });
}
