import { BoughError } from "../../errors.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { removeContextsOf } from "../contexts/kept-contexts.ts";
import { stateDirectory } from "../process/state-directory.ts";
import { openLocalStore } from "../service/connection.ts";
import { findRunningBuilds } from "./running-builds.ts";
import { requireHistory } from "./session-argument.ts";

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
  // All are there, or none is deleted.
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
