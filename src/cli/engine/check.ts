import type { Damage, EngineCheckReport } from "../../engine/check/contents.ts";
import { openStore } from "../../store/store.ts";
import { formatBytes, formatCount } from "../../terminal/quantity.ts";
import { createProgressRow } from "../../terminal/step-row.ts";
import { renderTable } from "../../terminal/table.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { type Runtime, watchedTerminal } from "../process/runtime.ts";
import { requireEngineDirectory } from "../service/engine-host.ts";
import { sessionDatabases } from "./session-images.ts";

export const check = command({
  name: "check",
  description:
    "Read everything that the embedded engine stores (uploaded files, layers, images), and report damage.",
  args: {
    repair: {
      type: "boolean",
      description: "Drop what is damaged: the next build uploads, imports or builds it again",
    },
  },
  needs: "engine",
  run: checkEngine,
  examples: [
    ["engine check", "report damage; the exit code is 1 if there is any"],
    ["engine check --repair", "and drop it"],
  ],
  agentNote:
    "It may take minutes; builds may run meanwhile. Exits with 1 if something is damaged and was not dropped. Changed content of a layer is detected from the second check on.",
});

/** Damage with the branches that it affects. */
interface DamageReport extends Damage {
  /** `<session> <branch>` for each branch whose image is lost. */
  branches: string[];
  /** True if --repair has dropped it. */
  dropped: boolean;
}

async function checkEngine(invocation: Invocation): Promise<number> {
  const { values, runtime, globals } = invocation;
  const directory = await requireEngineDirectory(runtime);
  const engine = await import("../../engine/check/check.ts");
  const { clock, signal } = runtime;
  const row = createProgressRow(clock, watchedTerminal(runtime, globals));
  let report: EngineCheckReport;
  try {
    report = await engine.checkEngine(directory, {
      signal,
      onProgress: (done) => row.show(`checking: ${amountOf(done)}`),
    });
  } finally {
    row.end();
  }
  const left = values.flag("repair")
    ? new Set(await (await import("../../engine/repair.ts")).repairEngine(directory, report.damage))
    : new Set(report.damage);
  const branches = report.damage.length === 0 ? new Map<string, string[]>() : branchesByImage(runtime);
  const findings = report.damage.map((damage) => ({
    ...damage,
    branches: damage.images.flatMap((image) => branches.get(image) ?? []),
    dropped: !left.has(damage),
  }));
  const { damage: _, ...checked } = report;
  printResult(invocation, {
    id: findings.map(({ name }) => name),
    json: { healthy: left.size === 0, ...checked, damage: findings },
    table: () => render(report, findings),
  });
  return left.size === 0 ? 0 : 1;
}

function amountOf({ files, layers, images, bytes }: Omit<EngineCheckReport, "damage">): string {
  const counts = [
    formatCount(files, "uploaded file"),
    formatCount(layers, "layer"),
    formatCount(images, "image"),
  ];
  return `${counts.join(", ")}: ${formatBytes(bytes)}`;
}

function render(report: EngineCheckReport, findings: readonly DamageReport[]): string {
  const left = findings.filter(({ dropped }) => !dropped);
  const verdict =
    findings.length === 0
      ? "no damage found"
      : left.length === 0
        ? `${findings.length} damaged, and dropped`
        : `${left.length} damaged`;
  const table = renderTable({
    header: ["WHAT", "NAME", "PROBLEM", "AFFECTS"],
    rows: findings.map(({ kind, name, problem, images, tags, branches }) => [
      kind,
      kind === "file" ? name.slice(0, 12) : name,
      problem,
      [formatCount(images.length, "image"), ...tags, ...branches].join(", "),
    ]),
  });
  const advice = left.some(({ kind }) => kind === "database")
    ? "The database cannot be repaired: move the engine's directory away. Its images can be imported and built again.\n"
    : left.length > 0
      ? "`bough engine check --repair` drops it; what a running operation uses stays until it has ended.\n"
      : "";
  return `checked ${amountOf(report)}; ${verdict}\n${findings.length === 0 ? "" : table}${advice}`;
}

function branchesByImage(runtime: Runtime): Map<string, string[]> {
  const branches = new Map<string, string[]>();
  for (const path of sessionDatabases(runtime)) {
    using store = openStore(path, runtime.clock);
    for (const { key } of store.sessions.list("")) {
      for (const branch of store.branches.list(key))
        branches.getOrInsert(branch.image, []).push(`${key} ${branch.name}`);
    }
  }
  return branches;
}
