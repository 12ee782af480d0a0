import { requirePossible } from "../../builder/bases/base.ts";
import { type CheckReport, checkDockerfile } from "../../check/check.ts";
import type { AssumedService } from "../../check/dry-run.ts";
import type { VariableChange } from "../../check/lints/changed-variables.ts";
import type { CheckedLock } from "../../check/lints/references.ts";
import { describeReport, renderCheckReport } from "../../check/report.ts";
import { isDockerRule } from "../../check/rules.ts";
import { BoughError, exitCodes } from "../../errors.ts";
import { defaultPlatform, machinePlatform, parsePlatform } from "../../image/platform.ts";
import { jsonText } from "../../terminal/json-text.ts";
import { version } from "../../version.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import { printResult } from "../command-line/result.ts";
import { requireAnnotatedPlatforms } from "../export/annotations.ts";
import type { PastChanges } from "../history/past-changes.ts";
import type { Runtime } from "../process/runtime.ts";
import { annotateFindings, isGitHubJob, pathOfDockerfile } from "./annotate.ts";
import { readSharing } from "./build-cache.ts";
import { chooseServices } from "./build-services.ts";
import { checkInBuildx } from "./call-json.ts";
import { type BuildInputs, readBuildInputs } from "./inputs.ts";
import { readBuildOptions } from "./options/build-options.ts";
import type { Call } from "./options/input-definitions.ts";
import { idsOf } from "./options/secret-options.ts";
import { recordedDockerfile } from "./recording/origin.ts";
import type { BuildInvocation } from "./request.ts";
import { findResultFiles, openLock } from "./result-files.ts";

/** Runs `bough build --check`. Returns the exit code. */
export async function runCheckCommand(
  call: Call,
  invocation: BuildInvocation,
  past?: PastChanges,
): Promise<number> {
  const { report, dockerfile } = await checkBuild(invocation, past);
  if (call.isJson) {
    const json = checkInBuildx(report, dockerfile);
    invocation.runtime.stdout.write(`${jsonText(json, { indent: 2 })}\n`);
  } else await printReport(report, invocation);
  if (invocation.runtime.isPlugin === true) {
    // docker's command line has one exit code for both, and no further checks.
    const warned = report.warnings.some(({ rule }) => isDockerRule(rule));
    return report.errors.length > 0 || (warned && !call.ignoresStatus) ? 1 : 0;
  }
  return report.errors.length > 0 ? exitCodes.usage : 0;
}

/** Checks what a build would build. Touches no service; of the state, it reads the history of builds. `given`: what others read, too. */
export async function checkBuild(
  invocation: BuildInvocation,
  given?: PastChanges,
): Promise<{ report: CheckReport } & Pick<BuildInputs, "dockerfile">> {
  const { annotatedPlatforms } = readOptions(invocation);
  const opened = await openLock(invocation);
  const reading = { log: invocation.log, keepsContext: false, lock: opened?.lock };
  using inputs = await readBuildInputs(invocation, reading);
  using own = given === undefined ? await openPastChanges(invocation.runtime) : undefined;
  const changes = (given ?? own)?.of({
    ...{ context: inputs.location, dockerfile: recordedDockerfile(inputs) },
    ...{ target: inputs.target ?? null, bakeTarget: invocation.target ?? null },
  });
  const report = await checkInputs(inputs, invocation, opened, changes);
  // A build, too, reports errors of the Dockerfile before these.
  if (report.errors.length === 0) {
    await inputs.secrets.load();
    await readSharing(invocation, inputs);
    await requireOptions(inputs.platforms, annotatedPlatforms, invocation);
  }
  return { report, dockerfile: inputs.dockerfile };
}

/** Docker's checks know nothing of past builds. */
async function openPastChanges(runtime: Runtime): Promise<PastChanges | undefined> {
  if (runtime.isPlugin === true) return undefined;
  return (await import("../history/past-changes.ts")).createPastChanges(runtime);
}

async function printReport(report: CheckReport, invocation: BuildInvocation): Promise<void> {
  const { globals, runtime } = invocation;
  const { path } = report.source;
  const isAnnotated = isGitHubJob(runtime) && globals.format === "table" && !globals.quiet;
  if (globals.report === undefined) {
    printResult(invocation, {
      id: "",
      get json() {
        return describeReport(report);
      },
      table: () => renderCheckReport(report),
    });
    if (!isAnnotated) return;
    return annotateFindings(invocation, path, { error: report.errors, warning: report.warnings });
  }
  const { codeQualityOf, sarifOf } = await import("../../check/report.ts");
  const reported = pathOfDockerfile(invocation, path).path;
  const isSarif = globals.report === "sarif";
  const json = isSarif ? sarifOf(report, reported, version) : codeQualityOf(report, reported);
  runtime.stdout.write(`${jsonText(json, { indent: 2 })}\n`);
}

/** Reads the options that only a build uses, so that an invalid value is the same error as in a build. */
function readOptions(
  invocation: BuildInvocation,
): Pick<ReturnType<typeof readBuildOptions>, "annotatedPlatforms"> {
  const { runtime } = invocation;
  findResultFiles(invocation);
  // With `-o -`, standard output gets the report, and may be a terminal.
  const stdout = { ...runtime.stdout, isTerminal: false };
  return readBuildOptions({ ...invocation, runtime: { ...runtime, stdout } });
}

/** Rejects if an option asks for a platform that the service certainly does not run. */
async function requireOptions(
  platforms: BuildInputs["platforms"],
  annotated: ReturnType<typeof readBuildOptions>["annotatedPlatforms"],
  invocation: BuildInvocation,
): Promise<void> {
  const services = chooseServices(invocation, platforms);
  if (platforms.length === 0 && annotated === undefined) return;
  const targets = [...platforms];
  for (const service of services) {
    const assumed = await assumeService(invocation.runtime, service.globals);
    if (assumed.isCertain) requirePossible(service.platforms, assumed.platforms);
    else if (platforms.length === 0) return;
    if (platforms.length === 0) targets.push(assumed.platforms.build);
  }
  if (annotated !== undefined) requireAnnotatedPlatforms(annotated, targets);
}

export async function checkInputs(
  { dockerfile, secrets, ...inputs }: BuildInputs,
  invocation: Pick<BuildInvocation, "options" | "runtime" | "globals">,
  lock?: CheckedLock,
  changes: readonly VariableChange[] = [],
): Promise<CheckReport> {
  const { path, text } = dockerfile;
  const { options, runtime } = invocation;
  const { signal } = runtime;
  return checkDockerfile({
    ...{ ...inputs, text, path, lock, signal, changes },
    platform: inputs.platforms[0],
    given: idsOf(secrets),
    turnsIntoErrors: options.check === "error",
    assumeService: () => assumeService(runtime, chooseServices(invocation, inputs.platforms)[0].globals),
  });
}

/** Returns the platform and features of the service that a build would use, as far as they are known without a request. */
async function assumeService(runtime: Runtime, globals: GlobalOptions): Promise<AssumedService> {
  if (!(await usesEngine(runtime, globals))) {
    const platform = parsePlatform(defaultPlatform);
    return {
      platforms: { build: platform, target: platform, mayDiffer: false },
      isCertain: false,
      startsFromScratch: false,
      mounts: { secrets: false, agents: false },
    };
  }
  const platform = parsePlatform(machinePlatform());
  return {
    platforms: { build: platform, target: platform, mayDiffer: true },
    isCertain: true,
    startsFromScratch: true,
    mounts: { secrets: true, agents: true },
  };
}

async function usesEngine({ environment }: Runtime, flags: GlobalOptions): Promise<boolean> {
  const { chooseService } = await import("../../service/profiles/profile.ts");
  const { readProfileFiles } = await import("../../service/profiles/profile-editor.ts");
  try {
    return chooseService({ flags, environment, files: readProfileFiles(environment) }).kind === "embedded";
  } catch (error) {
    // The build itself reports an unusable profile.
    if (error instanceof BoughError) return false;
    throw error;
  }
}
