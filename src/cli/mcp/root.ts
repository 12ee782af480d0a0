/** `bough mcp --root DIR`: confines an agent's paths on this machine to a directory. */
import { existsSync, lstatSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { displayPath, pathWithin } from "../../context/file-system/display-path.ts";
import { fileError, isMissing } from "../../context/file-system/file-error.ts";
import { ignoreFileCandidates } from "../../context/patterns/ignore.ts";
import { BoughError, usageError } from "../../errors.ts";
import { locateInputs } from "../builds/inputs.ts";
import { namedIgnoreFiles } from "../builds/options/build-contexts.ts";
import { readSecretOptions } from "../builds/options/secret-options.ts";
import type { BuildInvocation } from "../builds/request.ts";
import type { ContextEntry } from "../entries/context.ts";
import { parseFileArgument } from "../run/file-argument.ts";

export interface Root {
  /** Throws unless all files of this machine that a build reads are below the root. */
  requireBuildFiles(invocation: BuildInvocation): void;
  /** Throws unless a tool's `local_files` are below the root. */
  requireLocalFiles(files: readonly string[]): void;
}

/** @throws BoughError of kind `usage` if `path` is not a directory */
export function openRoot(path: string, workingDirectory: string): Root {
  const given = resolve(workingDirectory, path);
  const real = realDirectory(given, path);

  /** Throws for a path outside, without looking at it: an agent must not learn what exists there. */
  const requireWithin = (name: string, path: string) => {
    const absolute = resolve(workingDirectory, path);
    const isBelow = [given, real].some((root) => pathWithin(root, absolute) !== undefined);
    if (isBelow && isInProc(absolute))
      throw usageError(
        `${name} ${displayPath(path)}: files of /proc and the whole file system cannot be used`,
      );
    if (isBelow && pathWithin(real, resolveLinks(absolute)) !== undefined) return;
    const link = isBelow ? "a link leads out of" : "it is outside of";
    throw usageError(
      `${name} ${displayPath(path)}: ${link} ${displayPath(given)}, to which the server's --root confines its tools`,
    );
  };

  return {
    requireBuildFiles(invocation) {
      const { lock, "build-context": contexts = [] } = invocation.options;
      for (const [id, source] of readSecretOptions(invocation.options, invocation.runtime).secrets)
        if (source.kind === "file") requireWithin(`the secret ${id},`, source.path);
      if (lock !== undefined) requireWithin("the lock", lock);
      for (const file of contexts.flatMap(layoutFiles)) requireWithin("the layout", file);
      for (const file of namedIgnoreFiles(invocation)) {
        requireWithin("the build context", dirname(file));
        requireWithin("the ignore file", file);
      }
      const places = locateInputs(invocation);
      if (places.source.kind === "directory") requireWithin("the build context", places.source.path);
      if (places.dockerfile !== undefined) requireWithin("the Dockerfile", places.dockerfile.path);
      if (!places.isFetched)
        for (const file of ignoreFileCandidates(places.ignore)) requireWithin("the ignore file", file);
    },
    requireLocalFiles(files) {
      for (const file of files) requireWithin("local_files:", parseFileArgument(file).host);
    },
  };
}

/** Returns the files that are read first of a layout; none for other contexts. */
function layoutFiles(context: ContextEntry): string[] {
  return context.kind === "layout" ? [context.image.path, join(context.image.path, "index.json")] : [];
}

function realDirectory(path: string, shown: string): string {
  try {
    if (statSync(path).isDirectory()) return realpathSync(path);
  } catch (error) {
    throw new BoughError(`--root: ${fileError("use", shown, error).message}`, {
      kind: "usage",
      cause: error,
    });
  }
  throw usageError(`--root: ${displayPath(shown)} is not a directory`);
}

/** True for a path in `/proc`, which has the environment of this server, and for `/`, which contains `/proc`. */
function isInProc(path: string): boolean {
  const place = resolveLinks(path);
  return pathWithin("/proc", place) !== undefined || (place === "/" && existsSync(path));
}

/** Returns a path without links, as far as it exists. A dangling link, or one that can't be followed, counts as `/`. */
function resolveLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (!isMissing(error) || lstatSync(path, { throwIfNoEntry: false }) !== undefined) return "/";
    return join(resolveLinks(dirname(path)), basename(path));
  }
}
