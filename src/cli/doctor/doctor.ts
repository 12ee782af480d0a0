import { accessSync, constants, existsSync, mkdirSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { BoughError, messageOf } from "../../errors.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import type { ServiceChoice } from "../../service/profiles/profile.ts";
import { profileDirectory } from "../../service/profiles/profile-editor.ts";
import { reasonOf } from "../../system-error.ts";
import { formatBytes, formatCount } from "../../terminal/quantity.ts";
import { wrapSentence } from "../../terminal/terminal-text.ts";
import { commit, commitDate, version } from "../../version.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import { printResult } from "../command-line/result.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/runtime.ts";
import { chooseServiceFor, engineDirectory } from "../service/choice.ts";
import { openLocalStore, probe } from "../service/connection.ts";
import { type CheckResult, failedCheck } from "./check-result.ts";

export const doctor = command({
  name: "doctor",
  description:
    "Check what bough needs: the service, the credentials, the state directory, and the requirements of the embedded engine.",
  run: runDoctor,
  examples: [
    ["doctor", "what works and what does not, with fixes"],
    ["--local doctor", "whether the embedded engine can work here"],
  ],
  agentNote: "Exits with 1 if something required is broken, with 0 if there are only warnings.",
});

async function runDoctor(invocation: Invocation): Promise<number> {
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
    table: ({ columns }) => renderResults(results, columns),
  });
  return failed.length === 0 ? 0 : 1;
}

async function diagnose({ runtime, globals }: Invocation): Promise<CheckResult[]> {
  const { result, choice } = findService(runtime, globals);
  const results = [describeProgram(runtime), result, ...checkSecrets(runtime)];
  if (choice?.kind === "remote") results.push(await checkCredentials(runtime, choice));
  results.push(checkState(runtime, globals, choice !== undefined));
  if (runtime.platform === "linux") {
    const { diagnoseEngine, probeEngine } = await import("./engine.ts");
    results.push(...diagnoseEngine(await probeEngine(runtime), choice?.kind !== "remote"));
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

/** Wraps a text after `beginning`, and indents further lines, so that they do not look like checks. */
function wrapIndented(beginning: string, text: string, columns: number): string {
  return text
    .split("\n")
    .map((line, index) =>
      wrapSentence(index === 0 ? beginning : margin, visible(line), { indent: margin.length, columns }),
    )
    .join("\n");
}

/** Renders the results in full, unlike a table, which would cut off the fixes. */
function renderResults(results: readonly CheckResult[], columns = Number.POSITIVE_INFINITY): string {
  const width = Math.max(...results.map(({ check }) => check.length));
  return results
    .map(({ check, status, detail, fix }) => {
      const beginning = `${status.padEnd("warning".length)}  ${check.padEnd(width)}  `;
      const line = `${wrapIndented(beginning, detail, columns)}\n`;
      return fix === undefined ? line : `${line}${wrapIndented(`${margin}fix: `, fix, columns)}\n`;
    })
    .join("");
}

/** Finds the configured service. `choice` is absent if the configuration is invalid. */
function findService(
  runtime: Runtime,
  globals: GlobalOptions,
): { result: CheckResult; choice?: ServiceChoice } {
  try {
    const choice = chooseServiceFor(runtime, globals);
    const detail = choice.kind === "embedded" ? "the embedded engine" : `${choice.url} (${choice.source})`;
    return { result: { check: "service", status: "ok", detail }, choice };
  } catch (error) {
    return { result: failedCheck("service", error) };
  }
}

/** Checks that a remote service responds and accepts the token. */
async function checkCredentials(
  runtime: Runtime,
  choice: Extract<ServiceChoice, { kind: "remote" }>,
): Promise<CheckResult> {
  const check = "credentials";
  try {
    const { expires, permissions } = await probe(choice, runtime);
    const parts = [
      "the service accepts the token",
      ...(expires === undefined ? [] : [`it expires ${expires}`]),
      ...(permissions.length === 0 ? [] : [`its permissions: ${permissions.join(", ")}`]),
    ];
    return { check, status: "ok", detail: parts.join("; ") };
  } catch (error) {
    runtime.signal.throwIfAborted();
    // The service may implement only the requests that a build needs.
    if (error instanceof NotFoundError) {
      return { check, status: "warning", detail: `cannot check the token: ${messageOf(error)}` };
    }
    return failedCheck(check, error);
  }
}

/** Checks that only its owner can read the file with the tokens. Returns nothing without such a file, and on Windows. */
function checkSecrets({ environment, platform }: Runtime): CheckResult[] {
  const path = join(profileDirectory(environment), "auth.ini");
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || platform === "win32") return [];
  const mode = stats.mode & 0o777;
  const check = "profiles";
  if ((mode & 0o077) === 0) return [{ check, status: "ok", detail: `${path} is private` }];
  const detail = `other users of this machine can read ${path} (mode 0${mode.toString(8)})`;
  return [{ check, status: "warning", detail, fix: `chmod 600 ${path}` }];
}

/** The free space below which doctor warns: a build soon uses it up. */
const lowSpaceBytes = 1_000_000_000;

/** Checks that the state directory is usable. Opens the database of the chosen service, as every command does. */
function checkState(runtime: Runtime, globals: GlobalOptions, hasService: boolean): CheckResult {
  const check = "state directory";
  const directory = stateDirectory(runtime);
  try {
    makeWritable(directory);
    if (hasService) openLocalStore(runtime, globals).close();
    const { mode, uid } = statSync(directory);
    const isForeign = runtime.userId !== undefined && uid !== runtime.userId && uid !== 0;
    const isOpen = runtime.userId !== undefined && (mode & 0o1002) === 0o002;
    if (isForeign || isOpen) {
      const how = isForeign ? `it belongs to uid ${uid}` : `mode 0${(mode & 0o7777).toString(8)}`;
      const fix = isForeign ? "Set BOUGH_HOME to a directory of your own." : `chmod o-w ${directory}`;
      const detail = `other users of this machine can write to ${directory} (${how})`;
      return { check, status: "warning", detail, fix };
    }
    const { bavail, bsize } = statfsSync(directory);
    const detail = `${directory}, ${formatBytes(bavail * bsize)} free`;
    if (bavail * bsize >= lowSpaceBytes) return { check, status: "ok", detail };
    const fix =
      "Free space on the disk (`bough engine prune`), or set BOUGH_HOME to a directory on another one.";
    return { check, status: "warning", detail, fix };
  } catch (error) {
    return failedCheck(check, error);
  }
}

function makeWritable(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    accessSync(directory, constants.W_OK);
  } catch (error) {
    throw new BoughError(`${directory} cannot be written to: ${reasonOf(error)}`, {
      hint: "Set BOUGH_HOME to a directory of your own.",
      cause: error,
    });
  }
}

const storeCheck = "engine's store";

/** Checks the names and sizes of everything that the engine stores. Returns nothing if there is no engine yet. */
async function checkEngineStore(runtime: Runtime): Promise<CheckResult[]> {
  const directory = engineDirectory(runtime);
  if (!existsSync(join(directory, "engine.db"))) return [];
  try {
    const { checkQuickly } = await import("../../engine/check/check.ts");
    const { files, layers, images, damage } = await checkQuickly(directory);
    const counts = [
      formatCount(images, "image"),
      formatCount(layers, "layer"),
      formatCount(files, "uploaded file"),
    ];
    if (damage.length === 0) return [{ check: storeCheck, status: "ok", detail: counts.join(", ") }];
    const [first] = damage;
    const detail = `${damage.length} damaged of ${counts.join(", ")}; ${first?.kind} ${first?.name}: ${first?.problem}`;
    const fix = "bough engine check --repair (the next build also repairs it)";
    return [{ check: storeCheck, status: "warning", detail, fix }];
  } catch (error) {
    return [failedCheck(storeCheck, error)];
  }
}
