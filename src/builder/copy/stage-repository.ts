import { posix } from "node:path";
import type { RepositoryAddress, ResolvedRepository } from "../addresses/repository-address.ts";
import { redactUrl } from "../addresses/source-url.ts";
import type { BuildJob } from "../job.ts";
import type { Owner } from "../owners/ownership.ts";
import { accessForAdd } from "../remote-files/remote-access.ts";
import { readRepository } from "../repositories/read-repository.ts";
import { findCommit } from "../repositories/resolve-repository.ts";
import type { StagedContent } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";
import type { CopyPlan } from "./plan.ts";
import { type Item, type StagedItems, stageCopied, stageItems } from "./stage-items.ts";
import type { CopyWords } from "./words.ts";

interface RepositoryStaging {
  words: Pick<CopyWords, "changeMode" | "directoryMode" | "exclude">;
  destination: CopyPlan["destination"];
  owner: Owner;
  line: number;
}

/** Stages the files of the commit that a repository's address means now. `stageBefore`: returns the stage to add them to. */
export async function stageRepository(
  address: RepositoryAddress,
  staging: RepositoryStaging,
  stageBefore: () => Promise<StageState>,
  build: BuildJob,
): Promise<StagedItems> {
  const { words, owner, line, destination } = staging;
  const repository = await resolveRepository(address, words.exclude, build);
  const entries = await readRepository(repository, build);
  build.inputs?.repository(repository.shown, repository);
  const { path } = destination;
  const content: StagedContent = { kind: "repository", repository };
  const commitTime = entries.find(({ mtime }) => mtime !== undefined)?.mtime;
  const time = address.hasCommitTimes && commitTime !== undefined ? { mtime: commitTime } : {};
  const contents = entries.map(({ mtime: _, ...entry }): Item => {
    const staged = stageCopied({ ...entry, ...time }, content, words.changeMode, { ...owner, line });
    return { path: posix.join(path, entry.path), entry: staged };
  });
  const made = { owner, line, directoryMode: words.directoryMode };
  const items = path === "/" ? contents : [{ path, entry: undefined }, ...contents];
  return stageItems(items, { path, isDirectory: true }, made, await stageBefore(), build.services);
}

/** Resolves an address, once for all stages that ask. */
async function resolveRepository(
  address: RepositoryAddress,
  exclude: readonly string[],
  build: BuildJob,
): Promise<ResolvedRepository> {
  const shown = redactUrl(address.remote, build.asked.buildArgs);
  const found = await build.shared.repositories(JSON.stringify(address), () =>
    findCommit(address, accessForAdd(build)),
  );
  return { address, shown, exclude, ...found };
}
