import { readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** Finds the default branch of the repository that a directory is a checkout of, as the clone recorded it. Does not run git. */
export function findDefaultBranch(directory: string): string | undefined {
  const repository = findRepository(directory);
  if (repository === undefined) return undefined;
  const remote = "refs/remotes/origin/";
  const head = /^ref: refs\/remotes\/origin\/(.+)$/m.exec(read(join(repository, `${remote}HEAD`)))?.[1];
  if (head !== undefined) return head;
  const packed = read(join(repository, "packed-refs"));
  const has = (branch: string) =>
    [remote, "refs/heads/"].some(
      (kind) => read(join(repository, kind, branch)) !== "" || packed.includes(` ${kind}${branch}\n`),
    );
  return ["main", "master"].find(has);
}

/** Finds the directory with the repository's references. All worktrees of a repository share one. */
function findRepository(directory: string): string | undefined {
  for (let at = directory; ; at = dirname(at)) {
    const path = join(at, ".git");
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory()) return path;
    const link = stats?.isFile() ? /^gitdir: (.+)$/m.exec(read(path))?.[1] : undefined;
    if (link !== undefined) {
      const own = resolve(at, link);
      return resolve(own, read(join(own, "commondir")).trim());
    }
    if (dirname(at) === at) return undefined;
  }
}

/** Returns a file's content; empty if it can't be read or is no regular file, since reading a pipe would block. */
function read(path: string): string {
  try {
    return statSync(path).isFile() ? readFileSync(path, "utf8") : "";
  } catch {
    return "";
  }
}
