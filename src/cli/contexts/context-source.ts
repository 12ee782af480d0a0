import { statSync } from "node:fs";
import { resolve } from "node:path";
import {
  parseRepositoryAddress,
  type RepositoryAddress,
} from "../../builder/addresses/repository-address.ts";
import { isUrl, redactUrl } from "../../builder/addresses/source-url.ts";
import { usageError } from "../../errors.ts";
import { sha256Of } from "../../sha256.ts";

/** The build context that the argument CONTEXT names. */
export type ContextSource = DirectorySource | FetchedSource;

export interface DirectorySource {
  kind: "directory";
  path: string;
}

/** A context that is not a directory of this machine. */
export type FetchedSource =
  | RemoteSource
  /** `-`: an archive or a Dockerfile on standard input. */
  | { kind: "stdin" };

/** A context of another machine. */
export type RemoteSource =
  | { kind: "repository"; address: RepositoryAddress }
  /**
   * The URL of an archive, or of a Dockerfile, which is then built without any files. As the value of `--build-context`: of the
   * context's only file.
   */
  | { kind: "url"; url: string };

/**
 * Returns the context that CONTEXT names. As with Docker, an existing directory wins, whatever its name looks like.
 *
 * @throws BoughError of kind `usage` for an invalid address
 */
export function readContextSource(word: string, workingDirectory: string): ContextSource {
  const source = findContextSource(word, workingDirectory);
  if (source !== undefined) return source;
  throw usageError(
    `the build context ${redactUrl(word)}: unsupported address`,
    "Give https://HOST/X.git, git@HOST:X, ssh:// or git:// for a git repository, https:// for an archive, or the path of a directory.",
  );
}

/** Returns the context as `readContextSource` does, or `undefined` for an address of an unsupported kind. */
export function findContextSource(word: string, workingDirectory: string): ContextSource | undefined {
  if (word === "-") return { kind: "stdin" };
  if (isDirectory(resolve(workingDirectory, word))) return { kind: "directory", path: word };
  const address = parseRepositoryAddress(withScheme(word));
  if (address !== undefined) return { kind: "repository", address };
  if (isUrl(word)) return { kind: "url", url: word };
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(word)) return undefined;
  return { kind: "directory", path: word };
}

/** Returns `build:<sha16(abspath(context))>` (spec 1). `place` is that path, or the address that a context is fetched from. */
export function buildSession(place: string): string {
  return `build:${contextGroup(place)}`;
}

/** Names the directory that the contexts of a build session are kept in. */
export function contextGroup(place: string): string {
  return sha256Of(place).slice(0, 16);
}

/** Returns the group of a session; `undefined` if it is not a build's session. */
export function contextGroupOf(session: string): string | undefined {
  return /^build:([0-9a-f]{16})$/.exec(session)?.[1];
}

/** Makes a URL of `github.com/owner/name`, which Docker accepts, too. */
function withScheme(word: string): string {
  const [, path, rest = ""] = /^(github\.com\/[^/?#]+\/[^/?#]+?)(?:\.git)?([?#].*)?$/s.exec(word) ?? [];
  return path === undefined ? word : `https://${path}.git${rest}`;
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
