import { delimiter, isAbsolute, normalize, resolve } from "node:path";
import { redactUrl } from "../../builder/addresses/source-url.ts";
import { displayPath } from "../../context/file-system/display-path.ts";
import { fileError, isMissing } from "../../context/file-system/file-error.ts";
import { BoughError, usageError } from "../../errors.ts";
import { readRegularFile, utf8Text } from "../../open-for-reading.ts";
import { openWithoutLinks } from "../../open-without-links.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";
import type { ComposeInput } from "./compose-file.ts";
import { allowHint, type Entitlements } from "./entitlements.ts";
import { type BakeText, locationError } from "./file-location.ts";
import type { BakeInvocation } from "./options/bake-options.ts";
import type { RemoteDefinition } from "./remote/definition.ts";
import { readInTree } from "./remote/tree.ts";
import { isJsonLines } from "./sets/json-lines.ts";
import { isMap } from "./target.ts";
import { localPath, localPrefix } from "./target-names.ts";

/** Files that are read if none is named: all of these that exist, in this order. */
const defaultFiles = [
  ...["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"],
  ...["docker-bake.json", "docker-bake.hcl", "docker-bake.override.json", "docker-bake.override.hcl"],
];

interface ReadFile extends BakeText {
  /** False for a file of a repository, an archive or an address. */
  isLocal: boolean;
}

/** Reads the files that `-f` names, or those with a default name. */
export async function readFiles(
  { options: { file: named = [] }, runtime }: BakeInvocation,
  remote: RemoteDefinition | undefined,
  readFile: ComposeInput["readFile"],
): Promise<(ReadFile & { kind: FileKind })[]> {
  const { environment } = runtime;
  const separator = environment.BUILDX_BAKE_PATH_SEPARATOR || delimiter;
  const fromEnvironment = (environment.BUILDX_BAKE_FILE ?? "")
    .split(separator)
    .map((path) => path.trim())
    .filter((path) => path !== "");
  const paths = named.length > 0 ? named : fromEnvironment;
  const files = remote === undefined ? [] : readRemote(remote, paths);
  if (paths.length === 0 && remote === undefined)
    for (const file of defaultFiles) {
      const text = readFile(file, undefined);
      if (text !== undefined) files.push({ file, text, isLocal: true });
    }
  if (paths.length === 0 && files.length === 0)
    throw usageError(
      `no bake file or compose file ${remote === undefined ? "here" : "there"}`,
      `It is called ${defaultFiles.slice(0, 5).join(", ")} and so on; -f names another one, -f - is standard input.`,
    );
  for (const path of paths) {
    const local = localPath(path);
    if (remote !== undefined && local === undefined) continue;
    const file = local ?? path;
    const text = await readNamed(file, runtime);
    files.push({ file: file === "-" ? "standard input" : file, text, isLocal: true });
  }
  return files.map((each) => ({ ...each, kind: kindOf(each) }));
}

/** Reads remote files: those that are named, or those with a default name. */
function readRemote(remote: RemoteDefinition, paths: readonly string[]): ReadFile[] {
  const named = paths.filter((path) => localPath(path) === undefined);
  if ("file" in remote) {
    if (named[0] === undefined) return [{ ...remote.file, isLocal: false }];
    throw usageError(
      `-f ${named[0]}: ${remote.file.file} is a bake file itself`,
      `For a file that is here, write -f ${localPrefix}${named[0]}.`,
    );
  }
  const isNamed = named.length > 0;
  return (isNamed ? named : defaultFiles).flatMap((file) => {
    const text = readInTree(remote.tree, file, maxBytes);
    if (text !== undefined) return { file, text, isLocal: false };
    if (!isNamed) return [];
    throw usageError(
      `-f ${file}: no such file in ${redactUrl(remote.tree.address)}`,
      `For a file that is here, write -f ${localPrefix}${file}.`,
    );
  });
}

export type FileKind = "compose" | "json" | "json lines" | "hcl";

/** Returns the kind of a file by its extension or, without a known one, by its text. */
function kindOf({ file, text }: BakeText): FileKind {
  const [extension = ""] = /\.[^./]*$/.exec(file.toLowerCase()) ?? [];
  if (extension === ".yml" || extension === ".yaml") return "compose";
  if (extension === ".json") return "json";
  if (extension === ".hcl") return "hcl";
  if (extension === ".jsonl" || extension === ".ndjson" || isJsonLines(text)) return "json lines";
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

/** The maximum size of a bake file. */
export const maxBytes = 16 * 1024 * 1024;

/** Reads what `-f` names, which may be a pipe. */
async function readNamed(
  file: string,
  { inputs, signal, workingDirectory }: Pick<Runtime, "inputs" | "signal" | "workingDirectory">,
): Promise<string> {
  try {
    const path = file === "-" ? file : resolve(workingDirectory, file);
    return utf8Text(await inputs.read(path, { maxBytes, signal }));
  } catch (error) {
    signal.throwIfAborted();
    const hint = /^(json|table|csv|tsv)$/.test(file)
      ? `To print results as ${file}, give --format ${file}.`
      : undefined;
    const reason = isMissing(error) ? "no such file" : reasonOf(error);
    throw new BoughError(`-f ${file}: ${reason}`, { kind: "usage", cause: error, ...(hint && { hint }) });
  }
}

/** The maximum number of reads: files can include each other. */
const maxReads = 10_000;

/**
 * Returns a function that reads files with a default name and files that other files name, each once. It reads neither pipes nor
 * devices, and nothing outside of this directory, not even through a link, unless `--allow` names it.
 */
export function createReader(allowed: Entitlements): ComposeInput["readFile"] {
  const texts = new Map<string, string | undefined>();
  let reads = 0;
  return (path, at) => {
    const error = (message: string, hint?: string, cause?: unknown) =>
      at === undefined
        ? new BoughError(message, { kind: "usage", cause, ...(hint && { hint }) })
        : locationError(at, message, hint, cause);
    reads += 1;
    if (reads > maxReads) throw error(`files are included more than ${maxReads} times`);
    const real = allowed.resolve("fs.read", path);
    if (real === undefined) {
      const isLink = !isAbsolute(path) && !normalize(path).startsWith("..");
      const how = isLink ? "leads out of this directory, by a link" : "is outside of this directory";
      throw error(`${displayPath(path)} ${how}`, allowHint(`fs.read=${path}`));
    }
    try {
      return texts.getOrInsertComputed(real, readIfThere);
    } catch (cause) {
      throw error(fileError("read", path, cause).message, undefined, cause);
    }
  };
}

function readIfThere(path: string): string | undefined {
  try {
    return utf8Text(readRegularFile(path, maxBytes, openWithoutLinks));
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "")) return undefined;
    throw error;
  }
}
