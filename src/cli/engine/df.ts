import type { EngineUsage, LayerOwner } from "../../engine/prune/usage.ts";
import { formatCount } from "../../terminal/quantity.ts";
import { type Cell, sizeCell } from "../../terminal/table.ts";
import { command, type Surroundings } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { requireEngineDirectory } from "../service/engine-host.ts";
import { historyUsage } from "./history-usage.ts";
import { defaultSelection, withoutRunningBuilds } from "./prune.ts";
import { addScopeUses, scopeOwner, withSessionImages } from "./session-images.ts";

export const df = command({
  name: "df",
  description:
    "Show what the embedded engine stores, what uses it, how much space it takes, and what `bough engine prune` would free.",
  needs: "engine",
  run: showUsage,
  examples: [
    ["engine df", "what is stored"],
    ["engine df -f json", "as JSON, in bytes"],
  ],
  agentNote: "It changes nothing. `bough engine prune` says what could be removed.",
});

async function showUsage(surroundings: Surroundings): Promise<void> {
  const { runtime } = surroundings;
  const directory = await requireEngineDirectory(runtime);
  const { measureUsage } = await import("../../engine/prune/usage.ts");
  await withSessionImages(runtime, async ({ uses, contexts, buildsSince }) => {
    await addScopeUses(uses, surroundings);
    const usage = await measureUsage(directory, {
      ...withoutRunningBuilds(defaultSelection(runtime.clock), buildsSince),
      uses,
    });
    const { owners, ...totals } = usage;
    const history = historyUsage(surroundings);
    printResult(surroundings, {
      id: directory,
      json: {
        directory,
        ...totals,
        history,
        owners: owners.map((owner) => ({ ...owner, context: contexts.get(owner.name) ?? null })),
      },
      table: () => ({
        header: ["WHAT", "COUNT", "SIZE", "RECLAIMABLE", "NOTE"],
        rows: rowsOf(usage, history, contexts),
      }),
    });
  });
}

function rowsOf(
  usage: EngineUsage,
  history: EngineUsage["layers"],
  contexts: ReadonlyMap<string, string | null>,
): Cell[][] {
  const { images, owners, blobs, files, operations, caches } = usage;
  const parts: [what: string, of: EngineUsage["layers"], note: string][] = [
    ...owners.map((owner): [string, LayerOwner, string] => [
      nameOf(owner),
      owner,
      owner.kind === "session" ? (contexts.get(owner.name) ?? kindOf(owner)) : "",
    ]),
    [
      "archives",
      blobs,
      "of imported layers, as pushes send them; `bough engine prune --archives` frees them",
    ],
    ["uploaded files", files, ""],
    ["caches", caches, "of RUN --mount=type=cache"],
    ["operation logs", operations, ""],
    ["builds", history, "in `bough history`"],
  ];
  const sum = (key: "bytes" | "reclaimableBytes") => parts.reduce((total, [, part]) => total + part[key], 0);
  const total = { bytes: sum("bytes"), reclaimableBytes: sum("reclaimableBytes") };
  const sizes = ({ bytes, reclaimableBytes }: typeof total) => [
    sizeCell(bytes),
    reclaimableBytes === 0 ? { shown: "-", value: 0 } : sizeCell(reclaimableBytes),
  ];
  return [
    ...parts.map(([what, part, note]) => [what, String(part.count), ...sizes(part), note]),
    ["total", "", ...sizes(total), `${formatCount(images.count, "image")}, ${images.tagged} tagged`],
  ];
}

function kindOf({ name }: LayerOwner): string {
  return name.startsWith(scopeOwner) ? "see `bough cache show`" : "session";
}

function nameOf({ kind, name }: LayerOwner): string {
  switch (kind) {
    case "imported":
      return "imported layers";
    case "tagged":
      return "other tagged layers";
    case "session":
      return name;
    case "unused":
      return "unused layers";
  }
}
