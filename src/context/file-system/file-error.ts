import { isUtf8 } from "node:buffer";
import { readdirSync, readlinkSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { withOpenDirectory, withOpenParent } from "../../open-without-links.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import { displayPath } from "./display-path.ts";

/** Returns the error for a failed file-system call. It names the path: `cannot read dir/file: permission denied`. */
export function fileError(action: string, path: string, error: unknown): BoughError {
  return new BoughError(`cannot ${action} ${displayPath(path)}: ${reasonOf(error)}`, { cause: error });
}

/** Returns true if a path could not be found because nothing has that name. */
export function isMissing(error: unknown): boolean {
  const code = errorCode(error);
  return code === "ENOENT" || code === "ENOTDIR" || code === "ENAMETOOLONG";
}

/** Returns the error for a path of a build context that is no longer what it was when the build found it. */
export function changedError(contextPath: string, how: "changed" | "vanished", cause?: unknown): BoughError {
  return new BoughError(`${displayPath(contextPath)} ${how} while the build read it`, {
    hint: "Build again when nothing writes to the build context any more. If this command writes a log into the context, move the log or add it to .dockerignore.",
    cause,
  });
}

/** Returns the error for a failed call on a path that existed just before: something else may have replaced it since. */
export function readError(action: string, contextPath: string, error: unknown): BoughError {
  if (isMissing(error)) return changedError(contextPath, "vanished", error);
  // EINVAL: it was a link. ENXIO: it is a pipe or a socket.
  const isOther = ["EINVAL", "ELOOP", "ENXIO"].includes(errorCode(error) ?? "");
  return isOther ? changedError(contextPath, "changed", error) : fileError(action, contextPath, error);
}

/**
 * Returns true if a name or link target may have had bytes that are not UTF-8, which Bun replaces. bough, like BuildKit's protocol,
 * has paths as text: a file with such a name can't be copied.
 */
export function mayBeReplaced(text: string): boolean {
  return text.includes("\uFFFD");
}

/** Returns the error for a file whose name is not UTF-8; `undefined` if `name` in `directory` is as the directory has it. */
export function undecodableName(
  parent: { contextPath: string; absolutePath: string },
  name: string,
): BoughError | undefined {
  const raw = withOpenDirectory(parent.absolutePath, (place) =>
    readdirSync(place, { encoding: "buffer" }),
  ).find((bytes) => bytes.toString() === name && !isUtf8(bytes));
  if (raw === undefined) return undefined;
  const path = parent.contextPath === "" ? escaped(raw) : `${parent.contextPath}/${escaped(raw)}`;
  return new BoughError(`cannot copy ${displayPath(path)}: its name is not valid UTF-8`, { hint });
}

/** Returns the error for a link whose target is not UTF-8; `undefined` if it is. */
export function undecodableTarget(contextPath: string, absolutePath: string): BoughError | undefined {
  const raw = withOpenParent(absolutePath, (place) => readlinkSync(place, { encoding: "buffer" }));
  if (isUtf8(raw)) return undefined;
  return new BoughError(
    `cannot copy the link ${displayPath(contextPath)}: its target ${displayPath(escaped(raw))} is not valid UTF-8`,
    { hint },
  );
}

const hint = "Rename it, or leave it out with an ignore rule.";

/** Escapes all bytes that are not printable ASCII: `caf\xe9`. */
function escaped(bytes: Buffer): string {
  return bytes
    .toString("latin1")
    .replace(/[^ -~]/g, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
