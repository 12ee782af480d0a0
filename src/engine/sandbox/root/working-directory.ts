import { BoughError } from "../../../errors.ts";
import { type Locate, resolveInRoot } from "./root-path.ts";

/**
 * Resolves the working directory with all links of the image followed below `root`, so that runc follows none.
 *
 * Paths below `/proc` and `/dev` mean something else once the sandbox runs: `/proc/self/fd/7` is a directory of the machine that
 * runc up to 1.1.11 has open at that moment (CVE-2024-21626), and `/dev/fd/7` is a link to it.
 */
export function resolveWorkingDirectory(root: string, path: string, locate?: Locate): string {
  const { inside } = resolveInRoot(root, path, { followLast: true, locate });
  // Shared memory starts empty, without links.
  const [, covering] = /^\/(proc|dev(?!\/shm(?:\/|$)))\//.exec(inside) ?? [];
  if (covering === undefined) return inside;
  const through = inside === path ? "" : `, which leads to ${inside}`;
  throw new BoughError(`the working directory cannot be ${path}${through}`, {
    hint: `Use a directory that is not below /${covering}, where the sandbox has its own files.`,
  });
}
