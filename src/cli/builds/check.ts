import type { CheckReport } from "../../check/check.ts";
import { checkDockerfile } from "../../check/check.ts";
import { describeReport } from "../../check/report-json.ts";
import { renderReport } from "../../check/report-text.ts";
import { exitCodes } from "../../errors.ts";
import type { Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { assumeService } from "./assumed-service.ts";
import { type BuildInputs, readBuildInputs } from "./inputs.ts";
import { requireSamePlatform } from "./options/platform-option.ts";
import { idsOf } from "./options/secret-options.ts";

/** Runs `bough build --check`, which touches neither a service nor any state. Returns the exit code. */
export async function runCheckCommand(invocation: Invocation): Promise<number> {
  using inputs = await readBuildInputs(invocation, { log: invocation.log, keepsContext: false });
  const report = await checkInputs(inputs, invocation);
  printResult(invocation, {
    id: "",
    get json() {
      return describeReport(report);
    },
    table: () => renderReport(report),
  });
  return report.errors.length > 0 ? exitCodes.usage : 0;
}

export async function checkInputs(
  { dockerfile, secrets, platform, ...inputs }: BuildInputs,
  { runtime, globals }: Pick<Invocation, "runtime" | "globals">,
): Promise<CheckReport> {
  if (platform !== undefined) {
    const assumed = await assumeService(runtime, globals);
    if (assumed.isCertain) requireSamePlatform(platform, assumed.platform);
  }
  const { path, text } = dockerfile;
  const { signal } = runtime;
  return checkDockerfile({
    ...{ ...inputs, text, path, signal },
    given: idsOf(secrets),
    assumeService: () => assumeService(runtime, globals),
  });
}
