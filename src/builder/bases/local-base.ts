import { realpathSync } from "node:fs";
import { resolve, sep } from "node:path";
import type { BuildContext } from "../../context/build-context.ts";
import { BoughError } from "../../errors.ts";
import type { LocalReference } from "../../service/images/reference.ts";
import { reasonOf } from "../../system-error.ts";
import type { NamedContexts } from "../contexts/named-context.ts";

/** The local files that a Dockerfile may use in addition to its context. */
interface LocalPermissions {
  context: BuildContext;
  /** `--allow-local-from`. */
  allowsLocalFrom: boolean;
  /** Layouts on the command line are allowed, wherever they are. */
  contexts: NamedContexts;
}

/**
 * Returns the address of an image that a FROM takes from this machine: an absolute path below the context, with links resolved.
 * The Dockerfile may come from someone other than the person who builds it, so it must not reach other files. Throws BoughError.
 */
export function localBaseUrl(
  { transport, path, suffix, url }: LocalReference,
  { context, allowsLocalFrom, contexts }: LocalPermissions,
): string {
  if (contexts.values().some((named) => named.kind === "image" && named.reference === url)) return url;
  if (!allowsLocalFrom) {
    throw new BoughError(`FROM ${url} is not allowed: it names files of this machine`, {
      kind: "usage",
      hint: "If you trust the Dockerfile, build with --allow-local-from; the image must be inside the context.",
    });
  }
  const found = realPathOf(resolve(context.realPath, path), url);
  if (found !== context.realPath && !found.startsWith(withSeparator(context.realPath))) {
    throw new BoughError(`FROM ${url} leads out of the build context: ${found}`, {
      kind: "usage",
      hint: "The path is relative to the context. Import other images with `bough images import`.",
    });
  }
  if (transport !== "dir" && found.includes(":")) {
    throw new BoughError(
      `FROM ${url}: its path (${found}) contains a colon, which would start an image name`,
      {
        kind: "usage",
        hint: "Build it from a directory without one.",
      },
    );
  }
  return `${transport}:${found}${suffix}`;
}

function realPathOf(path: string, url: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw new BoughError(`FROM ${url}: cannot read ${path}: ${reasonOf(error)}`, {
      kind: "usage",
      cause: error,
      hint: "The path is relative to the context.",
    });
  }
}

function withSeparator(directory: string): string {
  return directory.endsWith(sep) ? directory : `${directory}${sep}`;
}
