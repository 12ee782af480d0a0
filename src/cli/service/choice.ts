import { availableParallelism } from "node:os";
import { join } from "node:path";
import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { requireOwnState } from "../../own-path.ts";
import { chooseService, type ServiceChoice, type ServiceFlags } from "../../service/profiles/profile.ts";
import { readProfileFiles } from "../../service/profiles/profile-editor.ts";
import { sha256Of } from "../../sha256.ts";
import { version } from "../../version.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/runtime.ts";

/** Returns the service that the options, profiles and variables choose. Throws if none can be used. */
export function chooseServiceFor(runtime: Runtime, globals: ServiceFlags): ServiceChoice {
  const { environment } = runtime;
  const choice = chooseService({ flags: globals, environment, files: readProfileFiles(environment) });
  if (choice.kind === "embedded" && runtime.platform !== "linux") {
    throw usageError(
      `the embedded engine needs Linux, and no service is configured`,
      wording`Configure one with ${{ option: "url" }} and ${{ option: "token" }}, with CONTREE_URL and CONTREE_TOKEN, or with a profile.`,
    );
  }
  return choice;
}

/** Returns the name of a service for the record of a build. */
export function serviceName(choice: ServiceChoice): string {
  return choice.kind === "embedded" ? "embedded engine" : new URL(choice.url).host;
}

/** True if the engine runs in this process, and ends with it. */
export function isEmbedded(runtime: Runtime, globals: GlobalOptions): boolean {
  return chooseServiceFor(runtime, globals).kind === "embedded";
}

/** Returns the default of `--jobs`: the number of this machine's processors for the engine, and 4 for a service with its own machines. */
export function defaultJobs(runtime: Runtime, globals: GlobalOptions): number {
  return isEmbedded(runtime, globals) ? availableParallelism() : 4;
}

/** Throws if the state directory belongs to another user: see `requireOwnState`. */
export function requireOwnStateDirectory(runtime: Pick<Runtime, "environment" | "platform">): void {
  requireOwnState(stateDirectory(runtime));
}

/** Returns the database's path: one per service and project, so that layers of one are never taken for those of another. */
export function storePath(runtime: Runtime, choice: ServiceChoice): string {
  return join(stateDirectory(runtime), "sessions", `${storeName(choice)}.db`);
}

/** The directory of the embedded engine's images. */
export function engineDirectory(runtime: Runtime): string {
  return join(stateDirectory(runtime), "engine");
}

/** Returns the address, token and user agent for a client of the service. */
export function clientOptions(
  { url, token, project }: Pick<Extract<ServiceChoice, { kind: "remote" }>, "url" | "token" | "project">,
  runtime: Runtime,
) {
  return {
    baseUrl: url,
    userAgent: userAgentOf(runtime),
    ...(token === undefined ? {} : { token }),
    ...(project === undefined ? {} : { project }),
  };
}

/** The User-Agent header of bough's requests. */
function userAgentOf({ platform }: Runtime): string {
  return `bough/${version} (${platform})`;
}

function storeName(choice: ServiceChoice): string {
  if (choice.kind === "embedded") return "embedded";
  const address = choice.url.replace(/\/+$/, "");
  const digest = sha256Of(JSON.stringify([address, choice.project ?? null]));
  return `${new URL(address).hostname.replace(/[^\w.-]/g, "_")}-${digest.slice(0, 12)}`;
}
