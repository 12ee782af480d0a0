/**
 * Finds out before a command is started why the kernel would refuse it. The runtimes report that with texts that differ by version,
 * and with exit codes that a command may have as well.
 */
import type { Stats } from "node:fs";
import { posix } from "node:path";
import { readProgramFormat } from "../system/program-format.ts";
import { hasAttribute } from "../system/xattrs.ts";
import {
  type Locate,
  lstatIfExists,
  type ResolvedPath,
  resolveInRoot,
  UnreachablePathError,
} from "./root/root-path.ts";
import type { SandboxProcess } from "./sandbox-process.ts";

/** Why a command can't be started, with runc's texts, and exit codes as shells and Docker have them. */
export interface RefusedCommand {
  exitCode: 126 | 127 | 255;
  message: string;
}

/** The sandbox's files, as this machine reaches them. */
interface SandboxFiles {
  root: string;
  locate: Locate;
}

/**
 * Returns why the process can't be started; `undefined` if no reason is found. Its working directory must contain no links.
 */
export function checkCommand(files: SandboxFiles, command: SandboxProcess): RefusedCommand | undefined {
  const [name = ""] = command.args;
  const found = name.includes("/") ? findExecutable(files, command, name) : searchPath(files, command, name);
  switch (found.kind) {
    case "unknown":
      return undefined;
    case "refused": {
      const { error, wasFound } = found;
      const reason = wasFound ? reasons[error] : `stat ${name}: ${reasons[error]}`;
      return refusedSearch(name, error === "ENOENT" ? 127 : 126, reason);
    }
    case "missing":
      return refusedSearch(name, 127, "executable file not found in $PATH");
    case "found": {
      const { path } = found;
      const isTooLong = command.args.some((word) => Buffer.byteLength(word) >= maxArgumentBytes);
      return isTooLong ? refusedByKernel(path, "E2BIG") : checkFormat(files, command, path, found);
    }
  }
}

function refusedSearch(name: string, exitCode: 126 | 127, reason: string): RefusedCommand {
  return { exitCode, message: `exec: ${JSON.stringify(name)}: ${reason}` };
}

/** Linux's MAX_ARG_STRLEN: the maximum size of one argument, with its terminating NUL. */
const maxArgumentBytes = 32 * 4096;

const reasons = {
  EACCES: "permission denied",
  E2BIG: "argument list too long",
  EISDIR: "is a directory",
  ELOOP: "too many levels of symbolic links",
  ENOENT: "no such file or directory",
  ENOEXEC: "exec format error",
  ENOTDIR: "not a directory",
} as const;

type Refusal = keyof typeof reasons;

function refusedByKernel(name: string, error: Refusal): RefusedCommand {
  return { exitCode: 255, message: `exec ${name}: ${reasons[error]}` };
}

type Search =
  /** `path` is the file's path in the sandbox, `file` its path on this machine. */
  | { kind: "found"; path: string; file: string }
  /** `wasFound` is true if there is a file, which can't be executed. */
  | { kind: "refused"; error: Refusal; wasFound: boolean }
  /** It depends on files that only exist once the sandbox runs. */
  | { kind: "unknown" };

/** Finds the first file of this name in PATH that the process may execute. */
function searchPath(
  files: SandboxFiles,
  command: SandboxProcess,
  name: string,
): Exclude<Search, { kind: "refused" }> | { kind: "missing" } {
  const search = command.secretEnv?.PATH ?? command.env.PATH ?? "";
  if (name === "" || search === "") return { kind: "missing" };
  for (const directory of search.split(":")) {
    // The runtimes treat a directory that is relative to the working directory differently.
    if (!directory.startsWith("/")) return { kind: "unknown" };
    const path = posix.join(directory, name);
    const found = findExecutable(files, command, path);
    if (found.kind !== "refused") return found;
  }
  return { kind: "missing" };
}

function findExecutable({ root, locate }: SandboxFiles, command: SandboxProcess, path: string): Search {
  let isKnown = true;
  const trace: Locate = (names) => {
    const located = locate(names);
    if (located === undefined) isKnown = false;
    return located;
  };
  const refused = (error: Refusal, wasFound: boolean) => ({ kind: "refused", error, wasFound }) as const;
  let file: ResolvedPath;
  try {
    file = resolveInRoot(root, posix.resolve(command.cwd, path), { followLast: true, locate: trace });
  } catch (error) {
    if (error instanceof UnreachablePathError) return refused("ELOOP", false);
    throw error;
  }
  const names = file.inside.split("/").slice(1);
  for (let depth = 0; depth < names.length; depth++) {
    const parent = trace(names.slice(0, depth));
    const stats = lstatIfExists(parent);
    if (!isKnown) return { kind: "unknown" };
    if (parent === undefined || stats === undefined) return refused("ENOENT", false);
    if (!stats.isDirectory()) return refused("ENOTDIR", false);
    const search = mayExecute(command, parent, stats);
    if (search !== true) return search === false ? refused("EACCES", false) : { kind: "unknown" };
  }
  if (!isKnown) return { kind: "unknown" };
  if (file.stats === undefined) return refused("ENOENT", false);
  if (file.stats.isDirectory()) return refused("EISDIR", true);
  if (!file.stats.isFile()) return refused("EACCES", true);
  const execution = mayExecute(command, file.path, file.stats);
  if (execution === undefined) return { kind: "unknown" };
  return execution ? { kind: "found", path, file: file.path } : refused("EACCES", true);
}

/** Returns true if the process may execute a file or search a directory; `undefined` if an access control list decides. */
function mayExecute(command: SandboxProcess, path: string, stats: Stats): boolean | undefined {
  const { uid, gid, additionalGids } = command;
  if (uid === 0) return stats.isDirectory() || (stats.mode & 0o111) !== 0;
  if (stats.uid !== uid && hasAttribute(path, "system.posix_acl_access")) return undefined;
  const isMember = stats.gid === gid || additionalGids.includes(stats.gid);
  const bit = stats.uid === uid ? 0o100 : isMember ? 0o010 : 0o001;
  return (stats.mode & bit) !== 0;
}

/** The maximum number of interpreters that Linux follows if each is itself a script. */
const maxInterpreters = 5;

/** Returns why the kernel refuses an executable file that it has found, in the name of the program that was asked for. */
function checkFormat(
  files: SandboxFiles,
  command: SandboxProcess,
  program: string,
  found: { file: string; interpreters?: number },
): RefusedCommand | undefined {
  const { file, interpreters = 0 } = found;
  const format = readProgramFormat(file);
  switch (format.kind) {
    case "unknown":
      return undefined;
    case "unsupported":
      return refusedByKernel(program, "ENOEXEC");
    case "native":
    case "script": {
      if (format.interpreter === undefined) return undefined;
      if (interpreters === maxInterpreters) return refusedByKernel(program, "ELOOP");
      const next = findExecutable(files, command, format.interpreter);
      if (next.kind === "unknown") return undefined;
      if (next.kind === "refused")
        return refusedByKernel(program, next.error === "EISDIR" ? "EACCES" : next.error);
      // The dynamic loader's own format is left to the kernel.
      if (format.kind === "native") return undefined;
      return checkFormat(files, command, program, { file: next.file, interpreters: interpreters + 1 });
    }
  }
}
