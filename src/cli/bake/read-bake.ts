import { readFileSync } from "node:fs";
import { delimiter, resolve } from "node:path";
import { fileError } from "../../context/file-system/file-error.ts";
import { BoughError, usageError } from "../../errors.ts";
import { readAtMost } from "../../streams.ts";
import { errorCode } from "../../system-error.ts";
import type { Invocation } from "../command-line/command.ts";
import { readProject } from "./compose-file.ts";
import { targetsOf } from "./compose-target.ts";
import { type BakeText, isCompose, readJsonFiles } from "./json-file.ts";
import { attestationText, isAddress, parseBoolean } from "./names.ts";
import { readOverrides } from "./overrides.ts";
import { combine, type ResolvedBake, resolveBake } from "./resolve.ts";
import type { Definition } from "./target.ts";

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
  const composeFiles = files.filter(({ isComposeFile }) => isComposeFile);
  const bakeFiles = files.filter(({ isComposeFile }) => !isComposeFile);
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
  const builtIn = {
    BAKE_CMD_CONTEXT: "cwd://",
    BAKE_LOCAL_PLATFORM: `linux/${process.arch === "x64" ? "amd64" : process.arch}`,
  };
  const definition = combine([
    ...(composeFiles.length === 0 ? [] : [targetsOf(readProject(composeFiles, input), input)]),
    ...(bakeFiles.length === 0 ? [] : [readJsonFiles(bakeFiles, { valueOf, builtIn })]),
  ]);
  return { definition, files: read };
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
  const sets = [
    ...values.list("set"),
    ...(values.flag("push") ? ["*.push=true"] : []),
    ...(values.flag("load") ? ["*.load=true"] : []),
    ...(values.flag("no-cache") ? ["*.no-cache=true"] : []),
    ...(values.flag("pull") ? ["*.pull=true"] : []),
    ...["sbom", "provenance"].flatMap((type) => {
      const text = values.text(type);
      return text === undefined ? [] : [`*.attest=${attestationText(type, text)}`];
    }),
  ];
  const overrides = readOverrides(sets, definition.targets, (name) => runtime.environment[name]);
  return resolveBake(definition, wanted, overrides);
}

async function readFiles({
  values,
  runtime,
}: Invocation): Promise<(BakeText & { isComposeFile: boolean })[]> {
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
    const text = file === "-" ? await readAll(runtime.stdin.stream()) : readIfThere(file, workingDirectory);
    if (text === undefined)
      throw usageError(
        `-f ${file}: there is no such file`,
        /^(json|table|csv|tsv)$/.test(file) ? `How results are printed is --format ${file} here.` : undefined,
      );
    files.push({ file: file === "-" ? "standard input" : file, text });
  }
  return files.map((each) => ({ ...each, isComposeFile: kindOf(each) === "compose" }));
}

/** Tells a compose file from a JSON bake file, by its name or its text. Refuses HCL. */
function kindOf({ file, text }: BakeText): "compose" | "json" {
  const [extension = ""] = /\.[^./]*$/.exec(file.toLowerCase()) ?? [];
  if (extension === ".hcl") throw refuseHcl(file);
  if (extension === ".yml" || extension === ".yaml") return "compose";
  if (extension === ".json") return "json";
  if (/^\s*\{/.test(text.replace(/^\uFEFF/, ""))) {
    try {
      return isCompose(JSON.parse(text)) ? "compose" : "json";
    } catch {
      // The reader of JSON says what is wrong.
      return "json";
    }
  }
  if (/^\s*(target|group|variable|function)\s+"/m.test(text)) throw refuseHcl(file);
  return "compose";
}

function refuseHcl(file: string): BoughError {
  return usageError(
    `${file}: HCL is not supported: bough reads JSON bake files and compose files`,
    `Convert it where docker is: docker buildx bake -f ${file} --print > docker-bake.json`,
  );
}

function readIfThere(path: string, workingDirectory: string): string | undefined {
  try {
    return readFileSync(resolve(workingDirectory, path), "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "")) return undefined;
    throw new BoughError(fileError("read", path, error).message, { kind: "usage", cause: error });
  }
}

/** The maximum that is read of standard input. */
const maxBytes = 16 * 1024 * 1024;

async function readAll(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const { bytes, isWhole } = await readAtMost(maxBytes, stream);
  if (isWhole) return bytes.toString();
  throw usageError(`-f -: there are more than ${maxBytes} bytes on standard input`);
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
