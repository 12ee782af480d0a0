import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import { nearest } from "../../suggest.ts";
import { errorCode } from "../../system-error.ts";
import { type ContextTitle, contextArgument, describeContext } from "../build-context.ts";
import { displayPath } from "../file-system/display-path.ts";
import type { FileSystem } from "../file-system/file-system.ts";
import { readTarget } from "./entry-of.ts";
import { isAboveRoot, type Resolution } from "./resolve-path.ts";

/** The part of a search that messages need. */
interface SearchedContext {
  /** The context directory, absolute and without links. */
  root: string;
  /** Names the context in messages. */
  context: ContextTitle;
  files: FileSystem;
}

/** Returns the error for a missing source. It suggests the most similar name, or names the dangling link. */
export function missingSource(
  source: string,
  resolution: Extract<Resolution, { kind: "missing" }>,
  search: SearchedContext,
): BoughError {
  const link = resolution.links.at(-1);
  if (link !== undefined) return danglingLink(source, link, search);
  const hasScheme = /^[a-z][a-z\d+.-]*:\/\//i.test(source);
  return new BoughError(nothingIn(search, source), {
    hint: hasScheme
      ? "COPY does not accept URLs; ADD accepts those that begin with http:// or https://."
      : isAboveRoot(source)
        ? wording`Sources are relative to the context directory: give a parent directory as ${contextArgument(search.context)}.`
        : suggestion(resolution.directory, resolution.name, search),
  });
}

/** Returns the error for a source that Docker does not find, because it does not send ignored files. */
export function ignoredSource(source: string, search: SearchedContext): BoughError {
  return new BoughError(nothingIn(search, source), {
    hint: "An ignore rule leaves it out. Remove the rule, or re-include the path with one that begins with !.",
  });
}

/** Returns the error for a pattern below a path that is not a directory. */
export function notADirectory(source: string, path: string, search: SearchedContext): BoughError {
  return new BoughError(nothingIn(search, source), {
    hint: `${displayPath(path)} is not a directory.`,
  });
}

function nothingIn({ context }: SearchedContext, source: string): string {
  return `no such file or directory in ${describeContext(context)}: ${displayPath(source)}`;
}

function suggestion(directory: string, name: string, { root, files, context }: SearchedContext): Message {
  if (context.isFile === true)
    return "As in Docker, what that address leads to is one file, which is called context. An archive is not unpacked, and the address of a git repository ends in .git.";
  try {
    const names = files.readDirectory(`${root}/${directory}`);
    if (directory === "" && names.length === 0)
      return context.name === undefined ? emptyContext : "That directory is empty.";
    const similar = nearest(name, names);
    if (similar !== undefined) return `Did you mean ${displayPath(posix.join(directory, similar))}?`;
  } catch (error) {
    if (errorCode(error) === "ENOTDIR") return `${displayPath(directory)} is not a directory.`;
  }
  return "Sources are relative to the context directory, not to the Dockerfile's directory.";
}

const emptyContext = wording`The build context is empty: a Dockerfile given as the context (standard input, a URL) comes without other files. Give a directory as CONTEXT, and the Dockerfile with ${{ option: "dockerfile" }}.`;

function danglingLink(source: string, link: string, { root, files, context }: SearchedContext): BoughError {
  const target = readTarget({ absolutePath: `${root}/${link}`, contextPath: link }, files);
  const through = link === source ? "" : `${displayPath(source)}: `;
  return new BoughError(
    `${through}the symbolic link ${displayPath(link)} points to ${displayPath(target)}, which is not in ${describeContext(context)}`,
    {
      hint: target.startsWith("/")
        ? "In a build, an absolute link is relative to the context root. Copy its target into the context."
        : "Copy its target into the context, or remove the link.",
    },
  );
}
