import type { Stats } from "node:fs";
import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { PathResolution } from "../../paths/path-resolution.ts";
import { type ContextTitle, contextArgument, describeContext, mainContext } from "../build-context.ts";
import { displayPath } from "../file-system/display-path.ts";
import { fileError, isMissing } from "../file-system/file-error.ts";
import type { FileSystem } from "../file-system/file-system.ts";
import { readTarget } from "./entry-of.ts";

/** The result of following a path in the context, with all of its links. */
export type Resolution =
  | {
      kind: "found";
      /** The path without links; "" is the context root. */
      contextPath: string;
      absolutePath: string;
      stats: Stats;
      /** The links that were followed. */
      links: readonly string[];
    }
  | {
      kind: "missing";
      /** The directory that lacks the name, without links. */
      directory: string;
      name: string;
      links: readonly string[];
    };

/**
 * Normalizes a source word to a path relative to the context root, "" for the root itself. A leading `/` means the root, and `..`
 * at the root is the root, as in BuildKit.
 */
export function contextPathOf(source: string): string {
  return posix.normalize(`/${source}`).replace(/^\/+|\/$/g, "");
}

/** Returns true if a source word leads above the context root, where `contextPathOf` cuts it off. */
export function isAboveRoot(source: string): boolean {
  return /^\.\.(\/|$)/.test(posix.normalize(source.replace(/^\/+/, "")));
}

/**
 * Follows a clean path with all its links, the last one included, as Docker does for a source. The target of an absolute link is
 * resolved from the context root.
 *
 * @param context names the context in messages
 * @throws BoughError if a link leads out of the context or in a circle, or if a part can't be read
 */
export function resolveInContext(
  root: string,
  path: string,
  files: FileSystem,
  context: ContextTitle = mainContext,
): Resolution {
  const links: string[] = [];
  const resolution = new PathResolution(path, {
    tooManyLinks: () => new BoughError(`${displayPath(path)}: its symbolic links form a loop`),
    aboveRoot: () => outside(links, context),
  });
  const { reached } = resolution;
  /** The `stat` of the path that was reached last, if there has been no link since. */
  let last: { contextPath: string; stats: Stats } | undefined;
  for (let name = resolution.next(); name !== undefined; name = resolution.next()) {
    const contextPath = [...reached, name].join("/");
    const absolutePath = `${root}/${contextPath}`;
    const stats = statPath(absolutePath, contextPath, files);
    if (stats === undefined || !isListed([root, ...reached].join("/"), name, files))
      return { kind: "missing", directory: reached.join("/"), name, links };
    if (stats.isSymbolicLink()) {
      links.push(contextPath);
      resolution.follow(readTarget({ absolutePath, contextPath }, files));
    } else {
      resolution.enter(name);
      last = { contextPath, stats };
    }
  }
  const contextPath = reached.join("/");
  const absolutePath = contextPath === "" ? root : `${root}/${contextPath}`;
  const stats =
    last !== undefined && last.contextPath === contextPath
      ? last.stats
      : statPath(absolutePath, contextPath, files);
  if (stats === undefined) return { kind: "missing", directory: "", name: contextPath, links };
  return { kind: "found", contextPath, absolutePath, stats, links };
}

function statPath(absolutePath: string, contextPath: string, files: FileSystem): Stats | undefined {
  if (contextPath.includes("\0")) return undefined;
  try {
    return files.stat(absolutePath);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileError("read", contextPath, error);
  }
}

/** Returns true if a directory lists an existing file under just this name; see `FileSystem.foldsNames`. */
function isListed(directory: string, name: string, files: FileSystem): boolean {
  if (files.foldsNames !== true) return true;
  try {
    return files.readDirectory(directory).includes(name);
  } catch (error) {
    throw fileError("read the directory", directory, error);
  }
}

function outside(links: readonly string[], context: ContextTitle): BoughError {
  return new BoughError(
    `the symbolic link ${displayPath(links.at(-1) ?? "")} leads out of ${describeContext(context)}`,
    {
      hint: wording`Copy its target into the context, or give a parent directory as ${contextArgument(context)}.`,
    },
  );
}
