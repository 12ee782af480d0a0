import { commit, commitDate, version } from "../../version.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import type { Runtime } from "../process/runtime.ts";
import type { CheckResult } from "./check-result.ts";
import { checkCredentials, checkSecrets, findService } from "./service.ts";
import { checkState } from "./state.ts";

export const doctor = command({
  name: "doctor",
  description:
    "Check what bough needs: the service, the credentials, the state directory, and the requirements of the embedded engine.",
  run: examine,
  examples: [
    ["doctor", "what works and what does not, with fixes"],
    ["--local doctor", "whether the embedded engine can work here"],
  ],
  agentNote: "Exits with 1 if something required is broken, with 0 if there are only warnings.",
});

async function examine(invocation: Invocation): Promise<number> {
  const results = await diagnose(invocation);
  const failed = results.filter(({ status }) => status === "failed");
  printResult(invocation, {
    id: failed.map(({ check }) => check),
    json: {
      healthy: failed.length === 0,
      version,
      commit: commit ?? null,
      commitDate: commitDate ?? null,
      checks: results.map((result) => ({ ...result, fix: result.fix ?? null })),
    },
    table: () => renderResults(results),
  });
  return failed.length === 0 ? 0 : 1;
}

async function diagnose({ runtime, globals }: Invocation): Promise<CheckResult[]> {
  const { result, choice } = findService(runtime, globals);
  const results = [describeProgram(runtime), result, ...checkSecrets(runtime)];
  if (choice?.kind === "remote") results.push(await checkCredentials(runtime, choice));
  results.push(checkState(runtime, globals, choice !== undefined));
  if (runtime.platform === "linux") {
    const { diagnoseEngine, examineEngine } = await import("./engine.ts");
    results.push(...diagnoseEngine(await examineEngine(runtime), choice?.kind !== "remote"));
    const { checkEngineStore } = await import("./store.ts");
    results.push(...(await checkEngineStore(runtime)));
  }
  return results;
}

function describeProgram({ platform }: Runtime): CheckResult {
  const origin = commit === undefined ? [] : [`commit ${commit.slice(0, 12)} of ${commitDate?.slice(0, 10)}`];
  const detail = [version, ...origin, `Bun ${Bun.version}`, `${platform} ${process.arch}`].join(", ");
  return { check: "bough", status: "ok", detail };
}

const margin = " ".repeat("warning".length + 2);

/** Indents further lines, so that they do not look like checks. */
function indented(text: string): string {
  return text.split("\n").map(visible).join(`\n${margin}`);
}

/** Renders the results in full, unlike a table, which would cut off the fixes. */
function renderResults(results: readonly CheckResult[]): string {
  const width = Math.max(...results.map(({ check }) => check.length));
  return results
    .map(({ check, status, detail, fix }) => {
      const line = `${status.padEnd("warning".length)}  ${check.padEnd(width)}  ${indented(detail)}\n`;
      return fix === undefined ? line : `${line}${margin}fix: ${indented(fix)}\n`;
    })
    .join("");
}
