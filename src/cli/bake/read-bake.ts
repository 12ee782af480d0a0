import { homedir } from "node:os";
import { delimiter, resolve } from "node:path";
import { fileError, isMissing } from "../../context/file-system/file-error.ts";
import { BoughError, usageError } from "../../errors.ts";
import { readRegularFile } from "../../open-for-reading.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import type { Invocation } from "../command-line/command.ts";
import type { Runtime } from "../process/runtime.ts";
import type { BakeText } from "./bake-text.ts";
import { readBakeCall } from "./call.ts";
import { readProject } from "./compose-file.ts";
import { targetsOf } from "./compose-target.ts";
import { attestationText, isAddress, parseBoolean } from "./names.ts";
import { readOverrides } from "./overrides.ts";
import { combine, type ResolvedBake, resolveBake } from "./resolve.ts";
import { type Definition, isMap } from "./target.ts";

/** The files that are read if none is named, as many as there are, in this order. */
const defaultFiles = [
  ...["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"],
  ...["docker-bake.json", "docker-bake.hcl", "docker-bake.override.json", "docker-bake.override.hcl"],
];

/**
 * Reads the files that `-f` names, or those with a usual name. Returns also the names of all that were read, with what they include.
 * Throws a usage BoughError if there is none.
 */
export async function readDefinition(
  invocation: Invocation,
): Promise<{ definition: Definition; files: ReadonlySet<string> }> {
  const { values, runtime, log } = invocation;
  const { environment, workingDirectory } = runtime;
  const given = readVariables(values.list("var"));
  const isShared = parseBoolean(environment.BUILDX_BAKE_DISABLE_VARS_ENV_LOOKUP ?? "") !== true;
  const valueOf = (name: string) => given.get(name) ?? (isShared ? environment[name] : undefined);
  const files = await readFiles(invocation);
  const read = new Set(files.map(({ file }) => file));
  const composeFiles = files.filter(({ kind }) => kind === "compose");
  const bakeFiles = files.filter(({ kind }) => kind !== "compose");
  const warned = new Set<string>();
  const input = {
    readFile(path: string) {
      const text = readIfThere(path, workingDirectory);
      if (text !== undefined) read.add(path);
      return text;
    },
    environment: valueOf,
    warn(message: string) {
      if (!warned.has(message)) log.warn(message);
      warned.add(message);
    },
  };
  const definition = combine([
    ...(composeFiles.length === 0 ? [] : [targetsOf(readProject(composeFiles, input), input)]),
    ...(bakeFiles.length === 0 ? [] : [await readBake(bakeFiles, { ...input, valueOf }, runtime)]),
  ]);
  return { definition, files: read };
}

/** Reads bake files in HCL and JSON. What that needs is loaded only for them. */
async function readBake(
  files: readonly (BakeText & { kind: FileKind })[],
  { valueOf, warn }: { valueOf(name: string): string | undefined; warn(message: string): void },
  { environment, clock }: Invocation["runtime"],
): Promise<Definition> {
  const { readBakeSources } = await import("./hcl/read-files.ts");
  return readBakeSources(
    files.map(({ file, text, kind }) => ({ name: file, text, isJson: kind === "json" })),
    {
      valueOf,
      warn,
      builtIn: {
        BAKE_CMD_CONTEXT: "cwd://",
        BAKE_LOCAL_PLATFORM: `linux/${process.arch === "x64" ? "amd64" : process.arch}`,
      },
      now: () => new Date(clock.now()),
      homeDirectory: environment.HOME ?? homedir(),
    },
  );
}

/** Returns the targets that the command line asks for, complete. */
export function resolveTargets({ values, runtime }: Invocation, definition: Definition): ResolvedBake {
  const wanted = values.positionals.length === 0 ? ["default"] : values.positionals;
  const address = wanted.find(isAddress);
  if (address !== undefined)
    throw usageError(
      `${address}: bake files at an address are not supported`,
      "Clone the repository, and bake there.",
    );
  const { method } = readBakeCall(values);
  const sets = [
    ...values.list("set"),
    ...(values.flag("push") ? ["*.push=true"] : []),
    ...(values.flag("load") ? ["*.load=true"] : []),
    ...(method === undefined ? [] : [`*.call=${method}`]),
    ...["no-cache", "pull"].flatMap((flag) => {
      if (values.flag(flag)) return [`*.${flag}=true`];
      // Given as false, it counts for targets that have true.
      return values.off?.includes(flag) ? [`*.${flag}=false`] : [];
    }),
    ...["sbom", "provenance"].flatMap((type) => {
      const text = values.text(type);
      return text === undefined ? [] : [`*.attest=${attestationText(type, text)}`];
    }),
  ];
  const overrides = readOverrides(sets, definition.targets, (name) => runtime.environment[name]);
  return resolveBake(definition, wanted, overrides);
}

async function readFiles({ values, runtime }: Invocation): Promise<(BakeText & { kind: FileKind })[]> {
  const { environment, workingDirectory } = runtime;
  const named = values.list("file");
  const separator = environment.BUILDX_BAKE_PATH_SEPARATOR || delimiter;
  const ofEnvironment = (environment.BUILDX_BAKE_FILE ?? "")
    .split(separator)
    .map((path) => path.trim())
    .filter((path) => path !== "");
  const paths = named.length > 0 ? named : ofEnvironment;
  const files: BakeText[] = [];
  if (paths.length === 0)
    for (const file of defaultFiles) {
      const text = readIfThere(file, workingDirectory);
      if (text !== undefined) files.push({ file, text });
    }
  if (paths.length === 0 && files.length === 0)
    throw usageError(
      "no bake file or compose file here",
      `It is called ${defaultFiles.slice(0, 5).join(", ")} and so on; -f names another one, -f - is standard input.`,
    );
  for (const path of paths) {
    const file = path.replace(/^cwd:\/\//, "");
    const text = await readNamed(file, runtime);
    files.push({ file: file === "-" ? "standard input" : file, text });
  }
  return files.map((each) => ({ ...each, kind: kindOf(each) }));
}

type FileKind = "compose" | "json" | "hcl";

/** Tells what a file is by its name or, if that does not say it, by its text. */
function kindOf({ file, text }: BakeText): FileKind {
  const [extension = ""] = /\.[^./]*$/.exec(file.toLowerCase()) ?? [];
  if (extension === ".yml" || extension === ".yaml") return "compose";
  if (extension === ".json") return "json";
  if (extension === ".hcl") return "hcl";
  if (/^\s*\{/.test(text.replace(/^\uFEFF/, ""))) {
    try {
      return isCompose(JSON.parse(text)) ? "compose" : "json";
    } catch {
      // The reader of JSON says what is wrong.
      return "json";
    }
  }
  return /^\s*(target|group|variable|function)\s+["\w]/m.test(text) ? "hcl" : "compose";
}

function isCompose(value: unknown): boolean {
  return isMap(value) && isMap(value.services);
}

/** The maximum that is read of a file. */
const maxBytes = 16 * 1024 * 1024;

/** Reads what `-f` names, which may be a pipe. */
async function readNamed(
  file: string,
  { inputs, signal, workingDirectory }: Pick<Runtime, "inputs" | "signal" | "workingDirectory">,
): Promise<string> {
  try {
    const path = file === "-" ? file : resolve(workingDirectory, file);
    return (await inputs.read(path, { maxBytes, signal })).toString();
  } catch (error) {
    signal.throwIfAborted();
    const hint = /^(json|table|csv|tsv)$/.test(file)
      ? `How results are printed is --format ${file} here.`
      : undefined;
    const reason = isMissing(error) ? "there is no such file" : reasonOf(error);
    throw new BoughError(`-f ${file}: ${reason}`, { kind: "usage", cause: error, ...(hint && { hint }) });
  }
}

/** Reads a file with a usual name, or one that another file names: that can't be a pipe or a device. */
function readIfThere(path: string, workingDirectory: string): string | undefined {
  try {
    return readRegularFile(resolve(workingDirectory, path), maxBytes).toString();
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "")) return undefined;
    throw new BoughError(fileError("read", path, error).message, { kind: "usage", cause: error });
  }
}

function readVariables(given: readonly string[]): Map<string, string> {
  return new Map(
    given.map((text): [string, string] => {
      const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      if (name === undefined || value === undefined)
        throw usageError(`--var takes NAME=VALUE, not ${JSON.stringify(text)}`);
      return [name, value];
    }),
  );
}
