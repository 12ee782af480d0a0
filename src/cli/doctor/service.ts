import { statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../errors.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import type { ServiceChoice } from "../../service/profiles/profile.ts";
import { profileDirectory } from "../../service/profiles/profile-files.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import type { Runtime } from "../process/runtime.ts";
import { chooseServiceFor } from "../service/choice.ts";
import { probe } from "../service/probe.ts";
import { type CheckResult, failedCheck } from "./check-result.ts";

/** Finds the service that is configured. There is no choice if the configuration is invalid. */
export function findService(
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
export async function checkCredentials(
  runtime: Runtime,
  choice: Extract<ServiceChoice, { kind: "remote" }>,
): Promise<CheckResult> {
  const check = "credentials";
  try {
    const { expires, permissions } = await probe(choice, runtime);
    const facts = [
      "the service accepts the token",
      ...(expires === undefined ? [] : [`it expires ${expires}`]),
      ...(permissions.length === 0 ? [] : [`its permissions: ${permissions.join(", ")}`]),
    ];
    return { check, status: "ok", detail: facts.join("; ") };
  } catch (error) {
    runtime.signal.throwIfAborted();
    // The service may implement only the requests that a build needs.
    if (error instanceof NotFoundError) {
      return { check, status: "warning", detail: `cannot check the token: ${messageOf(error)}` };
    }
    return failedCheck(check, error);
  }
}

/** Checks that only its owner can read the file with the tokens. Returns nothing if there is none, and on Windows. */
export function checkSecrets({ environment, platform }: Runtime): CheckResult[] {
  const path = join(profileDirectory(environment), "auth.ini");
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || platform === "win32") return [];
  const mode = stats.mode & 0o777;
  const check = "profiles";
  if ((mode & 0o077) === 0) return [{ check, status: "ok", detail: `${path} is private` }];
  const detail = `other users of this machine can read ${path} (mode 0${mode.toString(8)})`;
  return [{ check, status: "warning", detail, fix: `chmod 600 ${path}` }];
}
