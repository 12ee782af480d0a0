import { command, type Invocation } from "../command-line/command.ts";
import { requireSessionImage } from "../images/image-argument.ts";
import { openLocalStore } from "../service/connection.ts";
import { printBranch } from "./branch-result.ts";
import { requireBranch } from "./session-argument.ts";
import { sessionKey } from "./session-key.ts";

export const checkout = command({
  name: "checkout",
  description: "Make another branch the session's active one: `run` continues there.",
  args: {
    branch: {
      type: "positional",
      completes: "branch",
      required: true,
      description: "A branch; the first digits of a build's layer:<hash> are enough",
    },
  },
  run: checkOut,
  examples: [
    ["-S work session checkout try", "continue on the branch `try`"],
    [
      "-S build:0123456789abcdef session checkout layer:8709f41f767e",
      "switch to a layer of a build, to look around with `run`",
    ],
  ],
  agentNote:
    "A build's layers never move: the first `run` without -D on one creates a branch debug:<hash> and continues there.",
});

function checkOut(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  const key = sessionKey(invocation);
  using store = openLocalStore(runtime, globals);
  const branch = requireBranch(store, key, values.positionals[0] ?? "");
  store.branches.checkOut(key, branch);
  const image = requireSessionImage(store, key);
  printBranch(invocation, { session: key, branch, image });
}
