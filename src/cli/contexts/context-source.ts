import { statSync } from "node:fs";
import { resolve } from "node:path";
import {
  parseRepositoryAddress,
  type RepositoryAddress,
} from "../../builder/addresses/repository-address.ts";
import { isUrl, redactUrl } from "../../builder/addresses/source-url.ts";
import { usageError } from "../../errors.ts";
import type { FetchedContext } from "./fetched-context.ts";

/** The build context that the argument CONTEXT names. */
export type ContextSource = DirectorySource | FetchedSource;

export interface DirectorySource {
  kind: "directory";
  path: string;
}

/** A context that is not a directory of this machine. */
export type FetchedSource =
  | LazySource
  /** `-`: an archive or a Dockerfile on standard input. */
  | { kind: "stdin" };

/** A context that was fetched before, with the bake file that names it. */
interface KeptSource {
  kind: "fetched";
  context: FetchedContext;
}

/** A context whose files are fetched when they are needed. */
export type LazySource = RemoteSource | KeptSource;

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
  const source = findRemoteSource(word);
  if (source !== undefined) return source;
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(word)) return undefined;
  return { kind: "directory", path: word };
}

/** Returns the source that the address of a repository or a file names; `undefined` for other words. */
export function findRemoteSource(word: string): RemoteSource | undefined {
  const address = parseRepositoryAddress(withScheme(word));
  if (address !== undefined) return { kind: "repository", address };
  return isUrl(word) ? { kind: "url", url: word } : undefined;
}

/** Turns `github.com/owner/name`, which Docker accepts, too, into a URL. */
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
