import { join } from "node:path";
import type { ServiceChoice } from "../../../service/profiles/profile.ts";
import { sha256Of } from "../../../sha256.ts";
import type { Invocation } from "../../command-line/command.ts";
import { globalDefinitions } from "../../command-line/globals.ts";
import { stateDirectory } from "../../process/state-directory.ts";
import { chooseServiceFor, engineDirectory, storePath } from "../../service/choice.ts";

/** What a build is asked with, beside files and databases. */
export interface BuildIdentity {
  /** The directory and the name of what is remembered of it: of the latest with this command line, in this directory. */
  directory: string;
  name: string;
  /** A digest over all of it. */
  key: string;
  choice: ServiceChoice;
  /** What bough knows, and the embedded engine. */
  databases: readonly string[];
}

/** With any other option a build does more than to build, or what it does depends on more than is looked at here. */
const plainOptions: ReadonlySet<string> = new Set([
  "dockerfile",
  "tag",
  "docker",
  "no-docker",
  "target",
  "jobs",
  "build-arg",
  "no-default-excludes",
  "timeout",
  "network",
  "allow",
  "cpus",
  "memory",
  "pids",
  "progress",
  ...Object.keys(globalDefinitions),
]);

/** They decide how a build is shown, and by whom it is done; the latter is looked at by itself. */
const isShown = (name: string) => name === "progress" || Object.hasOwn(globalDefinitions, name);

/** What shells change by themselves, and what bough sets for itself. */
const passedOver = ["_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES", "BOUGH_USER_NAMESPACE"];

/** `undefined` for a build of which nothing can be remembered. Throws where no service is meant. */
export function identifyBuild({ values, globals, runtime }: Invocation): BuildIdentity | undefined {
  const { platform, workingDirectory, environment } = runtime;
  const program = runtime.identifyProgram();
  // Windows writes a directory's times when it has the leisure. What is debugged is to be seen.
  if (program === undefined || platform === "win32" || globals.logLevel === "debug") return undefined;
  if (values.names.some((name) => !plainOptions.has(name))) return undefined;
  const choice = chooseServiceFor(runtime, globals);
  const options = values.names
    .filter((name) => !isShown(name))
    .sort()
    .map((name) => [name, values.text(name), values.list(name)]);
  const asked = JSON.stringify([workingDirectory, values.positionals, options]);
  const service = choice.kind === "remote" ? [choice.url, choice.project, choice.source] : [];
  const variables = { ...environment };
  for (const name of passedOver) delete variables[name];
  const store = storePath(runtime, choice);
  return {
    directory: join(stateDirectory(runtime), "builds"),
    name: `${sha256Of(asked).slice(0, 32)}.json`,
    key: sha256Of(JSON.stringify([program, asked, service, variables])),
    choice,
    databases: choice.kind === "embedded" ? [store, join(engineDirectory(runtime), "engine.db")] : [store],
  };
}
