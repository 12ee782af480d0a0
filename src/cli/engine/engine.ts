import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type ArgsDef, defineCommand } from "citty";
import type { PrunePlan } from "../../engine/prune.ts";
import { BoughError } from "../../errors.ts";
import { openStore } from "../../store/store.ts";
import { formatBytes, formatCount } from "../../terminal/quantity.ts";
import { renderTable } from "../../terminal/table.ts";
import { visible } from "../../visible.ts";
import type { ArgumentDefinitions } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/state-directory.ts";
import { enterEngine } from "../service/engine-host.ts";

export const df: Command = {
  definition: defineCommand<ArgsDef>({
    meta: { name: "df", description: "Show what the embedded engine keeps, and how much room it takes." },
    args: {},
    run: ({ data }) => showUsage(data),
  }),
  examples: [
    ["engine df", "what there is"],
    ["engine df -f json", "as JSON, in bytes"],
  ],
  agentNote: "It only looks. `bough engine prune` says what could be removed.",
};

const pruneArguments: ArgumentDefinitions = {
  all: {
    type: "boolean",
    alias: "a",
    description: "Tagged images and those of builds go too: everything that is not running",
  },
  yes: { type: "boolean", alias: "y", description: "Do it; without this it only says what it would remove" },
};

export const prune: Command = {
  definition: defineCommand<ArgsDef>({
    meta: {
      name: "prune",
      description:
        "Remove what nothing uses: images without a tag that no session's branch names, their layers, uploaded files, caches of RUN --mount.",
    },
    args: pruneArguments,
    run: ({ data }) => pruneEngine(data),
  }),
  examples: [
    ["engine prune", "say what would be removed"],
    ["engine prune -y", "remove it"],
  ],
  agentNote:
    "With -y this command removes images. Layers of builds stay, unless --all is given: then they are built anew.",
};

async function showUsage(invocation: Invocation): Promise<void> {
  const directory = await engineDirectory(invocation.runtime);
  const { measureUsage } = await import("../../engine/prune.ts");
  const usage = await measureUsage(directory);
  const rows = [
    ["images", String(usage.images.count), "-", `${usage.images.tagged} tagged`],
    ["layers", String(usage.layers.count), formatBytes(usage.layers.bytes), ""],
    ["uploaded files", String(usage.files.count), formatBytes(usage.files.bytes), ""],
    ["finished operations", String(usage.operations.count), formatBytes(usage.operations.bytes), ""],
    ["caches", String(usage.caches.count), formatBytes(usage.caches.bytes), "of RUN --mount=type=cache"],
  ];
  printResult(invocation, {
    id: directory,
    json: { directory, ...usage },
    table: () => renderTable(["WHAT", "COUNT", "SIZE", ""], rows),
  });
}

async function pruneEngine(invocation: Invocation): Promise<void> {
  const { values, runtime, log } = invocation;
  const directory = await engineDirectory(runtime);
  const engine = await import("../../engine/prune.ts");
  const all = values.flag("all");
  const selection = { all, keep: all ? new Set<string>() : imagesOfBranches(runtime) };
  const isDone = values.flag("yes");
  const plan = isDone
    ? await engine.prune(directory, selection)
    : await engine.planPrune(directory, selection);
  if (!isDone) log.info("nothing is removed yet: -y does it");
  printResult(invocation, {
    id: plan.images.map(({ uuid }) => uuid),
    json: { removed: isDone, ...plan },
    table: () => renderPlan(plan, isDone),
  });
}

function renderPlan(plan: PrunePlan, isDone: boolean): string {
  const { images, layers, files, operations, caches } = plan;
  const bytes = layers.bytes + files.bytes + operations.bytes + caches.bytes;
  const counts = [
    formatCount(images.length, "image"),
    formatCount(layers.count, "layer"),
    formatCount(files.count, "uploaded file"),
    formatCount(operations.count, "finished operation"),
    formatCount(caches.count, "cache"),
  ].join(", ");
  const tagged = images.flatMap(({ tags }) => tags).sort();
  return [
    `${isDone ? "removed" : "would remove"} ${counts}: ${formatBytes(bytes)}`,
    ...(tagged.length === 0
      ? []
      : [`tags that ${isDone ? "are gone" : "would go"}: ${tagged.map(visible).join(", ")}`]),
    "",
  ].join("\n");
}

/** Every branch of every database of the engine's: its own, and those of servers on this machine that may be it, too. */
function imagesOfBranches(runtime: Runtime): Set<string> {
  const directory = join(stateDirectory(runtime), "sessions");
  const databases = existsSync(directory)
    ? readdirSync(directory).filter((name) => name.endsWith(".db"))
    : [];
  const images = new Set<string>();
  for (const name of databases) {
    const store = openStore(join(directory, name), runtime.clock);
    try {
      for (const image of store.sessions.branchImages()) images.add(image);
    } finally {
      store.close();
    }
  }
  return images;
}

export async function engineDirectory(runtime: Runtime): Promise<string> {
  const directory = await enterEngine(runtime);
  if (existsSync(directory)) return directory;
  throw new BoughError(`there is no engine in ${directory} yet`, {
    hint: "The first `bough build` without a service makes it.",
  });
}
