import { join } from "node:path";
import type { ServiceChoice } from "../../../service/profiles/profile.ts";
import { sha256Of } from "../../../sha256.ts";
import type { Invocation } from "../../command-line/command.ts";
import { globalDefinitions } from "../../command-line/globals.ts";
import { stateDirectory } from "../../process/state-directory.ts";
import { chooseServiceFor, engineDirectory, storePath } from "../../service/choice.ts";

/** What a build is asked with, beside files and what bough knows. */
export interface BuildIdentity {
  /** The directory and the name of what is remembered of it. The name is a digest over all that it is asked with. */
  directory: string;
  name: string;
  choice: ServiceChoice;
  /** Databases of bough's own and of the embedded engine. */
  databases: readonly string[];
  /** Directories whose names are a part of what the engine knows: its layers. */
  directories: readonly string[];
}

/** Any other option makes a build do more than build, or depend on more than is compared here. */
const plainOptions: ReadonlySet<string> = new Set([
  "dockerfile",
  "tag",
  "docker",
  "no-docker",
  "target",
  "jobs",
  "build-arg",
  "label",
  "platform",
  "no-default-excludes",
  "timeout",
  "network",
  "allow",
  "cpus",
  "memory",
  "pids",
]);

/** They decide how a build is shown, and by whom it is done; the latter is looked at by itself. */
const isBeside = (name: string) => name === "progress" || Object.hasOwn(globalDefinitions, name);

/** What shells change by themselves, and what bough sets for itself. */
const passedOver = ["_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES", "BOUGH_USER_NAMESPACE"];

/** `undefined` for a build of which nothing can be remembered. */
export function identifyBuild(invocation: Invocation): BuildIdentity | undefined {
  try {
    return identify(invocation);
  } catch {
    // What is wrong will be said by the build.
    return undefined;
  }
}

function identify({ values, globals, runtime }: Invocation): BuildIdentity | undefined {
  const { platform, workingDirectory, environment } = runtime;
  const program = runtime.identifyProgram();
  // Elsewhere nothing says whether a directory's times are to be relied on. What is debugged is to be seen.
  if (program === undefined || platform !== "linux" || globals.logLevel === "debug") return undefined;
  // As the options of these names do, which are not among the plain ones.
  if (environment.BOUGH_CACHE_FROM || environment.BOUGH_CACHE_TO) return undefined;
  const names = values.names.filter((name) => !isBeside(name));
  if (!names.every((name) => plainOptions.has(name))) return undefined;
  const choice = chooseServiceFor(runtime, globals);
  const options = names.sort().map((name) => [name, values.text(name), values.list(name)]);
  const service = choice.kind === "remote" ? [choice.url, choice.project, choice.source] : [];
  const variables = { ...environment };
  // `--build-arg NAME` takes a variable's value.
  for (const name of passedOver) if (!values.list("build-arg").includes(name)) delete variables[name];
  const asked = [program, workingDirectory, values.positionals, options, service, variables];
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
