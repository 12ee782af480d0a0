import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { coveredDirectories } from "../sandbox/root/mount-points.ts";

/** A mount in a sandbox. */
interface Mounted {
  /** The mount's path as the image sees it, without links. */
  at: string;
  /** The path of its contents on this machine; `undefined`: they don't exist before the sandbox runs. */
  contents: string | undefined;
  /** True if only this operation has the contents, and discards them: mount points may be made there. */
  isOwn: boolean;
  /** True if other sandboxes may change the contents at any time. */
  isShared: boolean;
}

/** Directories that the sandbox mounts its own file systems on. */
const covered: readonly Mounted[] = coveredDirectories.map((at) => ({
  at,
  contents: undefined,
  isOwn: false,
  isShared: false,
}));

/** A sandbox's root with its mounts, as the command will see it. */
export class MountedTree {
  readonly #root: string;
  readonly #mounted = [...covered];

  constructor(root: string) {
    this.#root = root;
  }

  add(mounted: Mounted): void {
    this.#mounted.push(mounted);
  }

  /**
   * Throws for a directory that other sandboxes may replace. If one replaced it by a link at the wrong moment, runc up to 1.1.11
   * would follow the link to a directory of this machine that it has open (CVE-2024-21626).
   */
  readonly requireStable = (directory: string): void => {
    const mounted = this.covering(directory);
    if (mounted === undefined || !mounted.isShared || mounted.at === directory) return;
    throw new BoughError(
      `the working directory cannot be ${directory}: other commands may change the cache there`,
      {
        hint: "Change to it in the command itself, or mount the cache with sharing=locked.",
      },
    );
  };

  /** Returns the latest mount that covers `path`; `undefined`: the root is visible there. */
  covering(path: string): Mounted | undefined {
    return this.#mounted.findLast(({ at }) => path === at || path.startsWith(`${at}/`));
  }

  readonly locate = (names: readonly string[]): string | undefined => {
    const path = `/${names.join("/")}`;
    const mounted = this.covering(path);
    if (mounted === undefined) return join(this.#root, path);
    return mounted.contents === undefined ? undefined : join(mounted.contents, path.slice(mounted.at.length));
  };
}
