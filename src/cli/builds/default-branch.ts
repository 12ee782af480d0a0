import { readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** The default branch of the repository that a directory is a checkout of, as its clone has noted it. Git itself is not asked. */
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

/** The directory with the repository's references: of a worktree the one that all of its worktrees have in common. */
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

/** Empty where there is no such file, or none that can be read: a pipe would be waited for. */
function read(path: string): string {
  try {
    return statSync(path).isFile() ? readFileSync(path, "utf8") : "";
  } catch {
    return "";
  }
}
