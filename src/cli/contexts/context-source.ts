import { statSync } from "node:fs";
import { resolve } from "node:path";
import { isUrl, redactUrl } from "../../builder/remote-files/source-url.ts";
import {
  parseRepositoryAddress,
  type RepositoryAddress,
} from "../../builder/repositories/repository-address.ts";
import { BoughError } from "../../errors.ts";
import { sha256Of } from "../../sha256.ts";

/** What the argument CONTEXT means. */
export type ContextSource = DirectorySource | FetchedSource;

export interface DirectorySource {
  kind: "directory";
  path: string;
}

/** A context that is not on this machine, or not as files. */
export type FetchedSource =
  | { kind: "repository"; address: RepositoryAddress }
  /** A URL that gives an archive, or a Dockerfile, which is then built without any files. */
  | { kind: "url"; url: string }
  /** `-`: standard input gives an archive or a Dockerfile. */
  | { kind: "stdin" };

/**
 * A directory that is there is meant, whatever its name looks like, as with Docker.
 *
 * @throws BoughError of kind `usage` for an address that makes no sense
 */
export function readContextSource(word: string, workingDirectory: string): ContextSource {
  if (word === "-") return { kind: "stdin" };
  if (isDirectory(resolve(workingDirectory, word))) return { kind: "directory", path: word };
  const address = parseRepositoryAddress(withScheme(word));
  if (address !== undefined) return { kind: "repository", address };
  if (isUrl(word)) return { kind: "url", url: word };
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(word))
    throw new BoughError(`the build context ${redactUrl(word)}: such an address is not supported`, {
      kind: "usage",
      hint: "A git repository is https://HOST/X.git, git@HOST:X, ssh:// or git://, an archive https://; a directory is named by its path.",
    });
  return { kind: "directory", path: word };
}

/** Spec 1: `build:<sha16(abspath(context))>`. `place`: instead of the path also where a context is fetched from. */
export function buildSession(place: string): string {
  return `build:${contextGroup(place)}`;
}

/** Names the directory that the contexts of a build session are kept in. */
export function contextGroup(place: string): string {
  return sha256Of(place).slice(0, 16);
}

/** Returns the same of a session; `undefined` if that is not a build's. */
export function contextGroupOf(session: string): string | undefined {
  return /^build:([0-9a-f]{16})$/.exec(session)?.[1];
}

/** `github.com/owner/name`, as Docker has always taken it. */
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
