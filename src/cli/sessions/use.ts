import { type ArgsDef, defineCommand } from "citty";
import type { Store } from "../../store/store.ts";
import type { ArgumentDefinitions } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { requireSessionImage, resolveImageArgument } from "../images/image-argument.ts";
import { connect, openLocalStore } from "../service/connection.ts";
import { printBranch } from "./branch-result.ts";
import { sessionKey } from "./session-key.ts";
import { appendEntries, workingBranch } from "./working-branch.ts";

const definitions: ArgumentDefinitions = {
  image: {
    type: "positional",
    completes: "image",
    required: false,
    description: "A UUID, tag:NAME or a tag (default: show the session's image)",
  },
};

export const use: Command = {
  definition: defineCommand<ArgsDef>({
    meta: {
      name: "use",
      description: "Set the image that the session works in; without one, show the session.",
    },
    args: definitions,
    run: ({ data }) => useImage(data),
  }),
  examples: [
    ["-S work use tag:app:dev", "the session `work` goes on from the image that a build has tagged"],
    ["-S work use", "which image, on which branch"],
    ["-S work session rollback", "take it back"],
  ],
  agentNote: [
    "Sessions are bough's own, on this machine: this changes nothing on the service.",
    "Give every task a session of its own with -S KEY or BOUGH_SESSION; without one it is `default`.",
  ].join("\n"),
};

async function useImage(invocation: Invocation): Promise<void> {
  const { values, globals, runtime, log } = invocation;
  const [reference] = values.positionals;
  const key = sessionKey(invocation);
  if (reference === undefined) {
    const store = openLocalStore(runtime, globals);
    try {
      show(invocation, store, key);
    } finally {
      store.close();
    }
    return;
  }
  const { service, store, close } = await connect(runtime, globals, log);
  try {
    const image = await resolveImageArgument(service, reference);
    const title = `use ${reference}`;
    appendEntries(store, workingBranch(store, key), [{ image, kind: "use", title, operation: null }]);
    show(invocation, store, key);
  } finally {
    await close();
  }
}

function show(invocation: Invocation, store: Store, session: string): void {
  const image = requireSessionImage(store, session);
  const branch = store.branches.active(session);
  printBranch(invocation, { session, branch, image });
}
