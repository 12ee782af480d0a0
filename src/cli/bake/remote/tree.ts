/** The files around a remote bake file: further bake files, and the contexts of its targets. */
import { redactUrl } from "../../../builder/addresses/source-url.ts";
import { contextPathOf, resolveInContext } from "../../../context/sources/resolve-path.ts";
import { messageOf, usageError } from "../../../errors.ts";
import { readRegularFile, utf8Text } from "../../../open-for-reading.ts";
import { findRemoteSource } from "../../contexts/context-source.ts";
import type { FetchedContext } from "../../contexts/fetched-context.ts";
import type { TargetFields } from "../target.ts";

export interface RemoteTree {
  /** The address as it was given. */
  address: string;
  fetched: FetchedContext;
}

/** The contexts of a target that are directories of a tree, as paths in it. */
export interface RemoteContexts {
  tree: RemoteTree;
  /** `undefined` if the main context is elsewhere. */
  context: string | undefined;
  contexts: ReadonlyMap<string, string>;
}

/** Reads a file of the tree; `undefined` if there is none. No link leads out of it. */
export function readInTree(
  { fetched: { tree, files, name } }: RemoteTree,
  path: string,
  maxBytes: number,
): string | undefined {
  const found = resolveInContext(tree, contextPathOf(path), files);
  if (found.kind === "missing") return undefined;
  if (!found.stats.isFile()) throw usageError(`-f ${path}: ${name} has no such file, but a directory`);
  const bytes = readRegularFile(found.absolutePath, maxBytes);
  try {
    return utf8Text(bytes);
  } catch (error) {
    throw usageError(`-f ${path}: ${messageOf(error)}`);
  }
}

/** Returns the contexts of a target that are in the tree, by docker buildx's rules. */
export function contextsInTree(
  tree: RemoteTree,
  { context = ".", contexts = {} }: Pick<TargetFields, "context" | "contexts">,
): RemoteContexts {
  const own = Object.entries(contexts).filter(([, value]) => isInTree(value));
  return {
    tree,
    context: isInTree(context) ? contextPathOf(context) : undefined,
    contexts: new Map(own.map(([name, value]) => [name, contextPathOf(value)])),
  };
}

function isInTree(value: string): boolean {
  const isElsewhere = /^(cwd:\/\/|target:|[\w+.-]+:\/\/)/.test(value);
  return !isElsewhere && findRemoteSource(value) === undefined;
}

/** Returns the address of a directory of the tree. */
export function addressInTree({ address }: RemoteTree, path: string): string {
  if (path === "") return address;
  const [whole, at = ""] = address.split("#", 2);
  const [ref, directory] = at.split(":", 2);
  return `${whole}#${ref}:${directory ? `${directory.replace(/\/$/, "")}/` : ""}${path}`;
}

/** Returns a directory of the tree as a context. It exists for as long as the tree does. */
export function contextIn(tree: RemoteTree, path: string): FetchedContext {
  const { fetched } = tree;
  const found = resolveInContext(fetched.tree, path, fetched.files);
  if (found.kind === "missing" || !found.stats.isDirectory())
    throw usageError(`${path}: ${redactUrl(tree.address)} has no such directory`);
  const isWhole = path === "";
  return {
    ...fetched,
    held: { path: fetched.held.path, [Symbol.dispose]() {} },
    tree: found.absolutePath,
    location: isWhole
      ? fetched.location
      : `${fetched.location}${fetched.location.includes("#:") ? "/" : "#:"}${path}`,
    name: isWhole ? "the build context" : `the build context ${path}`,
  };
}
