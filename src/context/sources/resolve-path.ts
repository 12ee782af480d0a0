import type { Stats } from "node:fs";
import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
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
  const ahead = path.split("/");
  const at: string[] = [];
  const links: string[] = [];
  /** The `stat` of the path in `at`, if it is known. */
  let stats: Stats | undefined;
  for (let name = ahead.shift(); name !== undefined; name = ahead.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      if (at.pop() === undefined) throw outside(links, context);
      stats = undefined;
      continue;
    }
    const contextPath = [...at, name].join("/");
    const found = statPath(`${root}/${contextPath}`, contextPath, files);
    if (found === undefined || !isListed([root, ...at].join("/"), name, files))
      return { kind: "missing", directory: at.join("/"), name, links };
    if (found.isSymbolicLink()) {
      links.push(contextPath);
      if (links.length > maxLinks)
        throw new BoughError(`${displayPath(path)}: its symbolic links form a loop`);
      const target = readTarget({ absolutePath: `${root}/${contextPath}`, contextPath }, files);
      if (target.startsWith("/")) {
        at.length = 0;
        stats = undefined;
      }
      ahead.unshift(...target.split("/"));
    } else {
      at.push(name);
      stats = found;
    }
  }
  const contextPath = at.join("/");
  const absolutePath = contextPath === "" ? root : `${root}/${contextPath}`;
  stats ??= statPath(absolutePath, contextPath, files);
  if (stats === undefined) return { kind: "missing", directory: "", name: contextPath, links };
  return { kind: "found", contextPath, absolutePath, stats, links };
}

/** The kernel's limit. */
const maxLinks = 40;

function statPath(absolutePath: string, contextPath: string, files: FileSystem): Stats | undefined {
  if (contextPath.includes("\0")) return undefined;
  try {
    return files.stat(absolutePath);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileError("read", contextPath, error);
  }
}

/** The directory has just been found to have something of that name. */
function isListed(directory: string, name: string, files: FileSystem): boolean {
  if (files.isLoose !== true) return true;
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
