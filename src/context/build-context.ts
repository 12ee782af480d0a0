import { readdirSync, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { BoughError } from "../errors.ts";
import { type Message, wording } from "../messages/wording.ts";
import { displayPath } from "./file-system/display-path.ts";
import { fileError, isMissing } from "./file-system/file-error.ts";
import { localPath } from "./file-system/file-system.ts";

/** The directory that COPY and ADD take their sources from. */
export interface BuildContext {
  /** The name of a `--build-context`; the build context itself has none. */
  name?: string;
  /** The path as the user gave it, for messages. */
  path: string;
  /** Absolute, links not resolved: the build session is named after it. */
  absolutePath: string;
  /** Absolute, all links resolved. */
  realPath: string;
  /** True if it was fetched from a git repository or a URL. */
  isFetched?: boolean;
  /** True if the address of a `--build-context` leads to a single file: the context contains only that, under the name `context`. */
  isFile?: boolean;
  /** True if no ignore file applies, so that no rule in one can leave files out. */
  isTakenWhole?: boolean;
}

/**
 * Opens a directory as the build context.
 *
 * @param path relative to `workingDirectory`, or absolute
 * @throws BoughError of kind `usage` if there is no such directory, or if it can't be read
 */
export async function openBuildContext(path: string, workingDirectory: string): Promise<BuildContext> {
  return openDirectory(path, workingDirectory, {
    notADirectory: () => ({
      message: `the build context ${displayPath(path)} is not a directory`,
      hint: wording`CONTEXT is a file: did you mean ${{ option: "dockerfile" }} ${displayPath(path)}?`,
    }),
    missing: () => ({
      message: `the build context ${displayPath(path)} does not exist`,
      hint: "CONTEXT is the directory whose files COPY and ADD can copy; the current directory is `.`.",
    }),
    action: "read the build context",
  });
}

/** Opens the directory of `--build-context NAME=PATH`, as `openBuildContext` opens CONTEXT. */
export async function openNamedContext(
  name: string,
  path: string,
  workingDirectory: string,
): Promise<BuildContext> {
  const option = wording`${{ option: "build-context" }} ${name}=${displayPath(path)}`;
  const context = await openDirectory(path, workingDirectory, {
    notADirectory: () => ({
      message: wording`${option}: this is not a directory`,
      hint: "Give the path of a directory. An archive has to be unpacked first.",
    }),
    missing: () => ({
      message: wording`${option}: there is no such directory`,
      hint: `Give the path of a directory, relative to the current one, or ${name}=docker-image://REFERENCE for an image.`,
    }),
    action: `open the directory of --build-context ${name}:`,
  });
  return { ...context, name };
}

/** The fields by which messages name a context. */
export type ContextTitle = Pick<BuildContext, "name" | "path" | "isFile">;

/** The build context itself. */
export const mainContext: ContextTitle = { path: "." };

/** Returns the words for a context in messages. */
export function describeContext({ name, path }: ContextTitle): string {
  return name === undefined ? "the build context" : `the build context ${name} (${displayPath(path)})`;
}

/** Returns the argument that gives a context. */
export function contextArgument({ name }: ContextTitle): Message {
  return name === undefined ? "CONTEXT" : wording`${{ option: "build-context" }} ${name}`;
}

interface OpenMessages {
  notADirectory(): { message: Message; hint: Message };
  missing(): { message: Message; hint: Message };
  /** The action that failed, in the message before the path. */
  action: string;
}

async function openDirectory(
  path: string,
  workingDirectory: string,
  { notADirectory, missing, action }: OpenMessages,
): Promise<BuildContext> {
  const absolutePath = resolve(workingDirectory, path);
  let realPath = absolutePath;
  try {
    realPath = localPath(realpathSync(absolutePath));
    if (!statSync(realPath).isDirectory()) {
      const { message, hint } = notADirectory();
      throw new BoughError(message, { kind: "usage", hint });
    }
    // access(2) would check the user who started the process, not the effective user.
    readdirSync(realPath);
    return { path, absolutePath, realPath };
  } catch (error) {
    if (error instanceof BoughError) throw error;
    // Bun replaces bytes that are not UTF-8 in arguments, the working directory and links' targets, and then finds no such directory.
    if (isMissing(error) && realPath.includes("\ufffd")) {
      const shown = displayPath(realPath);
      const message = `cannot ${action} ${shown}: its path is not valid UTF-8`;
      throw new BoughError(message, { kind: "usage", hint: "Rename or move it.", cause: error });
    }
    if (isMissing(error)) {
      const { message, hint } = missing();
      throw new BoughError(message, { kind: "usage", hint, cause: error });
    }
    throw new BoughError(fileError(action, path, error).message, { kind: "usage", cause: error });
  }
}
