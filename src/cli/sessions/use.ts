import { basename } from "node:path";
import { usageError } from "../../errors.ts";
import type { Store } from "../../store/store.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import type { Runtime } from "../process/runtime.ts";
import { imageDescription, requireSessionImage, resolveImageArgument } from "../references/image-argument.ts";
import { parseHistoryReference, requireHistoryEntry, sessionKey } from "../references/session-argument.ts";
import { appendEntries, workingBranch } from "../references/working-branch.ts";
import { connect, openLocalStore } from "../service/connection.ts";
import { branchResult } from "./branch.ts";

export const use = command({
  name: "use",
  description: "Set the image that the session works in; without one, show the session.",
  args: {
    image: {
      type: "positional",
      completes: "image",
      required: false,
      description: `${imageDescription}; @N or HEAD~N is one of the history (default: show the session's image)`,
    },
    new: {
      type: "boolean",
      alias: "N",
      description:
        "Start a session with a new name, and print the command that selects it in this shell: for eval",
    },
  },
  needs: ({ positionals }) => (positionals.length > 0 ? "service" : undefined),
  run: useImage,
  examples: [
    ["-S work use tag:app:dev", "the session `work` continues from the image that a build has tagged"],
    ["-S work use", "which image, on which branch"],
    ["-S work session rollback", "take it back"],
    ["use --new app:dev", 'a new session; `eval "$(...)"` of what it prints selects it in this shell'],
  ],
  agentNote: [
    "Sessions are bough's own, on this machine: this changes nothing on the service.",
    "Give every task a session of its own with -S KEY or BOUGH_SESSION; without one it is `default`.",
  ].join("\n"),
});

async function useImage(invocation: Invocation): Promise<void> {
  const { values, globals, runtime } = invocation;
  const [reference] = values.positionals;
  if (values.flag("new")) return startSession(invocation, reference);
  const key = sessionKey(invocation);
  if (reference === undefined) {
    using store = openLocalStore(runtime, globals);
    show(invocation, store, key);
    return;
  }
  await using connection = await connect(invocation);
  const { store } = connection;
  const place = parseHistoryReference(reference);
  const image =
    place === undefined
      ? await resolveImageArgument(connection, reference)
      : requireHistoryEntry(store, key, reference, place).image;
  recordUse(store, key, reference, image);
  show(invocation, store, key);
}

async function startSession(invocation: Invocation, reference: string | undefined): Promise<void> {
  const { globals, runtime, log } = invocation;
  const isPowerShell = runtime.platform === "win32" && !runtime.environment.SHELL;
  const example = isPowerShell
    ? "For example: bough use --new app:dev | Invoke-Expression"
    : 'For example: eval "$(bough use --new app:dev)"';
  if (reference === undefined) throw usageError("bough use --new: IMAGE is missing", example);
  if (globals.session !== undefined)
    throw usageError("bough use: --new cannot be used with -S, since it chooses a name", example);
  await using connection = await connect(invocation);
  const { store } = connection;
  const image = await resolveImageArgument(connection, reference);
  const session = unusedKey(store);
  recordUse(store, session, reference, image);
  log.info(`session ${session}: image ${image}`);
  printResult(invocation, {
    id: session,
    json: { session, branch: store.branches.active(session), image },
    table: () => `${assignment("BOUGH_SESSION", session, runtime)}\n`,
  });
}

/** Returns the command that sets a variable in the user's shell. On Windows, only shells of other systems set SHELL. */
function assignment(
  name: string,
  value: string,
  { environment: { SHELL = "" }, platform }: Pick<Runtime, "environment" | "platform">,
): string {
  if (platform === "win32" && SHELL === "") return `$env:${name} = '${value}'`;
  return basename(SHELL) === "fish" ? `set -gx ${name} ${value}` : `export ${name}=${value}`;
}

function unusedKey(store: Store): string {
  for (;;) {
    const key = `s-${crypto.randomUUID().slice(0, 8)}`;
    if (store.sessions.history(key) === undefined) return key;
  }
}

function recordUse(store: Store, key: string, reference: string, image: string): void {
  const title = `use ${reference}`;
  appendEntries(store, workingBranch(store, key), [{ image, kind: "use", title, operation: null }]);
}

function show(invocation: Invocation, store: Store, session: string): void {
  const image = requireSessionImage(store, session);
  const branch = store.branches.active(session);
  printResult(invocation, branchResult({ session, branch, image }));
}
