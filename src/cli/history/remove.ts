import { usageError } from "../../errors.ts";
import { formatCount } from "../../terminal/quantity.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { removeBuildRefs } from "./buildx-refs.ts";
import { requireBuild, withHistory } from "./find-build.ts";

export const rm = command({
  name: "rm",
  description: "Remove builds from the history, with their logs. Images and cached layers stay.",
  args: {
    build: {
      type: "positional",
      required: false,
      multiple: true,
      description: "IDs of builds, or their first characters",
    },
    all: { type: "boolean", alias: "a", description: "Remove all builds" },
  },
  run: removeBuilds,
  examples: [
    ["history rm 3kx9", "one build"],
    ["history rm --all", "all of them"],
  ],
  agentNote: "It does not ask for confirmation. Nothing but the record of the builds is lost.",
});

async function removeBuilds(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  const all = values.flag("all");
  if (all === values.positionals.length > 0)
    throw usageError("give the IDs of builds, or --all", "`bough history` lists the builds.");
  const removed = await withHistory(runtime, (builds, history) => {
    const chosen = all ? builds : values.positionals.map((given) => requireBuild(given, builds));
    const ids = [...new Set(chosen.map(({ id }) => id))];
    history.remove(ids);
    history.compact();
    return ids;
  });
  removeBuildRefs(removed, runtime);
  printResult(invocation, {
    id: removed,
    json: removed.map((id) => ({ removed: id })),
    table: () =>
      all ? `removed ${formatCount(removed.length, "build")}\n` : removed.map((id) => `${id}\n`).join(""),
  });
}
