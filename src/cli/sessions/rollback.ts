import { type ArgsDef, defineCommand } from "citty";
import { BoughError } from "../../errors.ts";
import type { HistoryEntry } from "../../store/sessions.ts";
import type { Store } from "../../store/store.ts";
import { formatCount } from "../../terminal/quantity.ts";
import { type ArgumentDefinitions, positiveInteger } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { openLocalStore } from "../service/connection.ts";
import { printBranch } from "./branch-result.ts";
import { requireHistory } from "./session-argument.ts";
import { sessionKey } from "./session-key.ts";
import { isLayerBranch, workingBranch } from "./working-branch.ts";

const definitions: ArgumentDefinitions = {
  steps: { type: "positional", required: false, description: "How many images to go back (default: 1)" },
};

export const rollback: Command = {
  definition: defineCommand<ArgsDef>({
    meta: {
      name: "rollback",
      description: "Take the active branch back to the image before the last command.",
    },
    args: definitions,
    run: ({ data }) => rollBack(data),
  }),
  examples: [
    ["-S work session rollback", "undo the last `run` or `use`"],
    ["-S work session rollback 3", "the last three"],
  ],
  agentNote:
    "Nothing is lost: `session show` lists what was rolled back, `session branch NAME --from ID` brings it back.",
};

function rollBack(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  const steps = positiveInteger(values.positionals[0], "STEPS") ?? 1;
  const key = sessionKey(invocation);
  const store = openLocalStore(runtime, globals);
  try {
    const { branch, entry } = goBack(store, key, steps);
    const { image } = entry;
    printBranch(invocation, { session: key, branch, image });
  } finally {
    store.close();
  }
}

function goBack(store: Store, key: string, steps: number): { branch: string; entry: HistoryEntry } {
  const entries = new Map(requireHistory(store, key).map((entry) => [entry.id, entry]));
  const { branch, head } = workingBranch(store, key);
  if (isLayerBranch(branch)) {
    throw new BoughError(`${branch} is a build's layer, which stays where it is`, {
      hint: `Go to the layer before it instead: \`bough session show ${key}\`, then session checkout.`,
    });
  }
  let entry = head;
  for (let step = 0; step < steps && entry !== undefined; step++) entry = entries.get(entry.parent ?? -1);
  if (entry === undefined) {
    throw new BoughError(
      `branch ${branch} of session ${key} cannot go back ${formatCount(steps, "image")}: it has ${depth(head, entries)} before its last`,
      { hint: `\`bough session show ${key}\` shows them.` },
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
