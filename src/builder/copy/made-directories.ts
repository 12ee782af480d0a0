import { directoryMode } from "../../image/file-mode.ts";
import { isRoot, type Owner, root } from "../owners/ownership.ts";
import { isStagedBelow } from "../staging/add-staged.ts";
import { isSameOrAbove } from "../state/path-in-image.ts";
import type { GivenOwner, StagedDirectory } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";

/**
 * Stages directories that have to exist: the WORKDIR and the parents of a destination. Those that the image lacks belong to
 * `owner` (BuildKit gives them the `--chown` of the COPY, or the USER of the WORKDIR), unless an earlier instruction has made
 * them: then they are root's.
 */
export function stageDirectories(
  paths: Iterable<string>,
  owner: Owner,
  line: number,
  stage: StageState,
): [string, StagedDirectory][] {
  return [...new Set(paths)].map((path) => [
    path,
    {
      type: "directory",
      mode: directoryMode,
      isExplicit: false,
      ...(isMadeBefore(path, stage) ? root : owner),
      line,
    },
  ]);
}

/** Stages a directory of a copy. It is explicit if its mode or owner differs from that of a directory that only has to exist. */
export function stageDirectory(mode: number, owned: GivenOwner): StagedDirectory {
  const isExplicit = mode !== directoryMode || !isRoot(owned);
  const { uid, gid, line, names } = owned;
  const directory: StagedDirectory = { type: "directory", mode, isExplicit, uid, gid, line };
  return names === undefined ? directory : { ...directory, names };
}

function isMadeBefore(path: string, { staged, config, workdirIsPending }: StageState): boolean {
  return (workdirIsPending && isSameOrAbove(path, config.WorkingDir)) || isStagedBelow(staged, path);
}
