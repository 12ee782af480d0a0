import { posix } from "node:path";
import type { CopiedEntry } from "../../store/copies.ts";
import { defaultDirectoryMode } from "../copy/made-directories.ts";
import { isRoot, type Owner } from "../copy/ownership.ts";
import type { CopyPlan } from "../copy/plan.ts";
import { stageItems } from "../copy/stage-items.ts";
import type { CopyWords } from "../copy/words.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import type { StagedEntry } from "../staging/staged.ts";
import { readRepository } from "./read-repository.ts";
import type { RepositoryAddress, ResolvedRepository } from "./repository-address.ts";
import { resolveRepository } from "./resolve-repository.ts";

/** An entry of a repository on its way; without one, the directory that its contents go into. */
interface Item {
  path: string;
  entry: CopiedEntry | undefined;
}

interface Staging {
  words: Pick<CopyWords, "changeMode" | "exclude">;
  destination: CopyPlan["destination"];
  owner: Owner;
  line: number;
}

/** Stages the files of the commit that a repository's address means now. */
export async function stageRepository(
  address: RepositoryAddress,
  staging: Staging,
  stage: StageState,
  build: BuildJob,
): ReturnType<typeof stageItems> {
  const { words, owner, line, destination } = staging;
  const repository = await resolveRepository(address, words.exclude, build);
  const entries = await readRepository(repository, build);
  build.inputs?.repository(repository.shown, repository);
  const { path } = destination;
  const contents: Item[] = entries.map((entry) => ({ path: posix.join(path, entry.path), entry }));
  const placed = {
    destination: { path, isDirectory: true },
    items: path === "/" ? contents : [{ path, entry: undefined }, ...contents],
    isSourceRoot: ({ entry }: Item) => entry === undefined,
    isNestedDirectory: ({ entry }: Item) => entry?.type === "directory",
    toStaged: ({ entry }: Item, mayBeThere: boolean) => {
      if (entry === undefined) throw new Error("the destination is not staged as an entry");
      return toStaged(entry, repository, staging, mayBeThere);
    },
  };
  return stageItems(placed, { owner, line }, stage, build);
}

function toStaged(
  entry: CopiedEntry,
  repository: ResolvedRepository,
  { words: { changeMode }, owner: { uid, gid }, line }: Staging,
  mayBeThere: boolean,
): StagedEntry {
  const owned = { uid, gid, line };
  switch (entry.type) {
    case "symlink":
      return { type: "symlink", target: entry.target, ...owned };
    case "directory": {
      const mode = changeMode(entry.mode, true);
      const isExplicit = mayBeThere || mode !== defaultDirectoryMode || !isRoot(owned);
      return { type: "directory", mode, isExplicit, ...owned };
    }
    case "file": {
      const { sha256, size, mtime = 0 } = entry;
      const mode = changeMode(entry.mode, false);
      return {
        type: "file",
        sha256,
        size,
        mode,
        content: { kind: "repository", repository },
        mtime,
        ...owned,
      };
    }
  }
}
