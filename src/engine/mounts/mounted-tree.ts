import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { coveredDirectories } from "../sandbox/root/mount-points.ts";

/** Something that is mounted in a sandbox. */
export interface Mounted {
  /** Where, as the image sees it: no part of it is a link. */
  at: string;
  /** Where its contents are on this machine; `undefined`: nowhere before the sandbox runs. */
  contents: string | undefined;
  /** Whether this operation alone has them and throws them away: mount points may be made there. */
  isOwn: boolean;
  /** Other sandboxes may change the contents at any time. */
  isShared: boolean;
}

/** The directories that are the sandbox's own. */
const covered: readonly Mounted[] = coveredDirectories.map((at) => ({
  at,
  contents: undefined,
  isOwn: false,
  isShared: false,
}));

/** A sandbox's root with what is mounted in it: what its command will see. */
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
   * runc up to 1.1.11 would follow a link that another sandbox puts in the directory's place at that moment, to a directory of this
   * machine that it has open (CVE-2024-21626).
   *
   * @throws BoughError for a directory that other sandboxes may replace
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

  /** What has been mounted over `path` last; `undefined`: the root is seen there. */
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
