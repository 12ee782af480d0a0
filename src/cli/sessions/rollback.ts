import { quote } from "../../builder/commands/command.ts";
import { BoughError } from "../../errors.ts";
import type { HistoryEntry } from "../../store/sessions.ts";
import type { Store } from "../../store/store.ts";
import { formatCount } from "../../terminal/quantity.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { parseHistoryReference, requireReferred } from "../references/history-reference.ts";
import { requireHistory, sessionKey } from "../references/session-argument.ts";
import { isLayerBranch, workingBranch } from "../references/working-branch.ts";
import { openLocalStore } from "../service/connection.ts";
import { printBranch } from "./branch-result.ts";

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
  run: rollBack,
  examples: [
    ["-S work session rollback", "undo the last `run` or `use`"],
    ["-S work session rollback 3", "the last three, as HEAD~3"],
    ["-S work session rollback @7", "to the entry 7 that `session show` lists"],
  ],
  agentNote:
    "Nothing is lost: `session show` lists what was rolled back, `session branch NAME --from ID` brings it back.",
});

function rollBack(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  const [given = "1"] = values.positionals;
  const reference = parseHistoryReference(given.startsWith("+") ? `@${given}` : given);
  const steps = reference === undefined ? positiveInteger(given, "STEPS") : undefined;
  const key = sessionKey(invocation);
  using store = openLocalStore(runtime, globals);
  const { branch, entry } =
    reference === undefined
      ? goBack(store, key, steps ?? 1)
      : goTo(store, key, requireReferred(store, key, given, reference));
  const { image } = entry;
  printBranch(invocation, { session: key, branch, image });
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
    hint: `Switch to the layer before it instead: \`bough session show ${quote(key)}\`, then session checkout.`,
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
      { hint: `\`bough session show ${quote(key)}\` shows them.` },
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
