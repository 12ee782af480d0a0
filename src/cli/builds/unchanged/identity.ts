import { join } from "node:path";
import { bootId } from "../../../boot-id.ts";
import type { ServiceChoice } from "../../../service/profiles/profile.ts";
import { sha256Of } from "../../../sha256.ts";
import type { Invocation } from "../../command-line/command.ts";
import { globalDefinitions } from "../../command-line/globals.ts";
import { stateDirectory } from "../../process/state-directory.ts";
import { chooseServiceFor, engineDirectory, storePath } from "../../service/choice.ts";

/** The program, arguments and environment of a build, without its files and bough's state. */
export interface BuildIdentity {
  /** The directory and the name of the build's record. The name is a digest of program, arguments and environment. */
  directory: string;
  name: string;
  choice: ServiceChoice;
  /** The databases of bough itself and of the embedded engine. */
  databases: readonly string[];
  /** Directories whose entries are a part of the engine's state: its layers. */
  directories: readonly string[];
}

/** Options of a build that can be recorded. Any other makes it do more than build, or depend on more than is compared here. */
const plainOptions: ReadonlySet<string> = new Set([
  "dockerfile",
  "tag",
  "docker",
  "no-docker",
  "target",
  "jobs",
  "build-arg",
  "build-context",
  "label",
  "platform",
  "no-default-excludes",
  "timeout",
  "network",
  "add-host",
  "allow",
  "cpus",
  "memory",
  "pids",
  "shm-size",
  "ulimit",
]);

/** True for options that select the display or the service. The service is compared separately. */
const isDisplayOrServiceOption = (name: string) =>
  name === "progress" || Object.hasOwn(globalDefinitions, name);

/** Variables that shells change, and one that bough sets itself. */
const ignoredVariables = ["_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES", "BOUGH_USER_NAMESPACE"];

/** Returns `undefined` for a build that can't be recorded. */
export function identifyBuild(invocation: Invocation): BuildIdentity | undefined {
  try {
    return identify(invocation);
  } catch {
    // The build itself reports the error.
    return undefined;
  }
}

function identify({ values, globals, runtime }: Invocation): BuildIdentity | undefined {
  const { platform, workingDirectory, environment } = runtime;
  const program = runtime.identifyProgram();
  // The times of directories are known to be reliable only on Linux. To debug a build, it must run.
  if (program === undefined || platform !== "linux" || globals.logLevel === "debug") return undefined;
  // They act like the options of the same names, which are not among `plainOptions`.
  if (environment.BOUGH_CACHE_FROM || environment.BOUGH_CACHE_TO) return undefined;
  const names = values.names.filter((name) => !isDisplayOrServiceOption(name));
  if (!names.every((name) => plainOptions.has(name))) return undefined;
  const choice = chooseServiceFor(runtime, globals);
  const options = names.sort().map((name) => [name, values.text(name), values.list(name)]);
  const service = choice.kind === "remote" ? [choice.url, choice.project, choice.source] : [];
  const variables = { ...environment };
  // `--build-arg NAME` takes a variable's value.
  for (const name of ignoredVariables) if (!values.list("build-arg").includes(name)) delete variables[name];
  // After a power failure, the engine first has to see which layers got to the disk.
  const asked = [bootId(), program, workingDirectory, values.positionals, options, service, variables];
  const store = storePath(runtime, choice);
  const engine = engineDirectory(runtime);
  const isEmbedded = choice.kind === "embedded";
  return {
    directory: join(stateDirectory(runtime), "builds"),
    name: `${sha256Of(JSON.stringify(asked))}.json`,
    choice,
    databases: isEmbedded ? [store, join(engine, "engine.db")] : [store],
    directories: isEmbedded ? [join(engine, "layers")] : [],
  };
}
