import type { HashOptions } from "../../context/hashing/hash.ts";
import type { ListedFile } from "../../context/sources/entry-list.ts";
import type { AddInstruction, CopyInstruction } from "../../dockerfile/instruction.ts";
import type { BuildJob } from "../job.ts";
import { titleOf } from "../location.ts";
import { resolveFileOwner, root } from "../owners/ownership.ts";
import type { PrefetchedSources } from "../prefetch.ts";
import type { StagedFile } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";
import { checkPlan, requireCopyTargets, requireDirectories } from "./check-plan.ts";
import { type CopyState, copyState } from "./copy-state.ts";
import { hashMatches, hashSources } from "./hash-sources.ts";
import type { PlannedCopy } from "./plan.ts";
import { type PlannedItem, PlannedItems } from "./planned-items.ts";
import { stageItems } from "./stage-items.ts";
import { hasTrees, stageTrees } from "./stage-trees.ts";
import { stagedItems, stageUrl } from "./staged-items.ts";

/** The files of a COPY or ADD, found but not read: that is enough for a cached layer. */
export interface FoundFiles {
  /** See `copyState`. */
  state(): CopyState | undefined;
  /** Reports the files as staged, without staging them. */
  report(): void;
  /** Stages them. Only contents of URLs are sent to the service already. `areSettled`: see `hashEach`. */
  stage(): Promise<{ stage: StageState; areSettled: boolean }>;
}

/** Checks the plan of a COPY or ADD. */
export async function findFiles(
  instruction: CopyInstruction | AddInstruction,
  planned: PlannedCopy,
  { prefetched, stage }: { prefetched: PrefetchedSources | undefined; stage: StageState },
  build: BuildJob,
): Promise<FoundFiles> {
  checkPlan(instruction, planned, build);
  const { words, plan } = planned;
  await requireDirectories(words.destination, stage, build.services);
  const { destination } = plan;
  const line = instruction.range.start;
  const title = titleOf(instruction);
  const owner = words.chown === "" ? root : await resolveFileOwner(words.chown, line, stage, build);

  const owned = { ...owner, line };
  const made = { owner, line, directoryMode: words.directoryMode };
  const stageItemsOf = async (
    some: Iterable<PlannedItem>,
    before: StageState,
    onProgress?: HashOptions["onProgress"],
  ) => {
    if (build.asked.dialect.copiesAsBuildKit)
      await requireCopyTargets(some, destination, before, build.services);
    if (onProgress !== undefined) build.emit({ type: "hashing", ...amountOf(some) });
    const { areSettled } = await hashEntries(some, build, prefetched, onProgress);
    const urls = new Map<PlannedItem, StagedFile>();
    for (const item of some instanceof PlannedItems ? some.others : some)
      if (item.kind === "url") urls.set(item, await stageUrl(item, owned, words.checksum, build));
    const arriving = stagedItems(some, urls, owned);
    return {
      areSettled,
      ...(await stageItems(arriving, destination, made, before, build.services)),
    };
  };
  return {
    state: () =>
      hasTrees(instruction, plan.items, build.asked.dialect)
        ? undefined
        : copyState({ words, plan, owner }, stage, build),
    report() {
      const amount = amountOf(plan.items);
      build.emit({ type: "hashing", ...amount });
      build.emit({ type: "staged", title, ...amount });
    },
    async stage() {
      // Done for the whole plan, because the items beside an archive become a plain list, in which links can't be found.
      if (build.asked.dialect.copiesAsBuildKit) groupLinks(plan.items);
      const unpacking = { destination, owner, line, words, stageBetween: stageItemsOf };
      const { items, ...unpacked } = await stageTrees(instruction, plan.items, unpacking, stage, build);
      const { staged, areSettled, ...copied } = await stageItemsOf(items, unpacked.stage, (done) =>
        build.emit({ type: "hashed", ...done }),
      );
      const all = { files: copied.files + unpacked.files, bytes: copied.bytes + unpacked.bytes };
      build.emit({ type: "staged", title, ...all });
      return { stage: { ...stage, staged }, areSettled };
    },
  };
}

/** Finds the hard links within each directory, which BuildKit keeps. */
function groupLinks({ matches }: PlannedItems): void {
  for (const { entries } of matches) entries.groupLinks();
}

async function hashEntries(
  items: Iterable<PlannedItem>,
  { services, source, eagerUploads, inputs }: BuildJob,
  prefetched: PrefetchedSources | undefined,
  onProgress: HashOptions["onProgress"] = () => undefined,
): Promise<{ areSettled: boolean }> {
  const { signal, clock } = services;
  const options = { signal, clock, cache: source.hashes, onProgress, eagerUploads, inputs };
  if (items instanceof PlannedItems)
    return (await prefetched?.hashes(onProgress)) ?? (await hashMatches(items.matches, options));
  await hashSources(filesAmong(items), options);
  return { areSettled: false };
}

function amountOf(items: Iterable<PlannedItem>): { files: number; bytes: number } {
  const amount = { files: 0, bytes: 0 };
  const parts = items instanceof PlannedItems ? items.matches.map(({ entries }) => entries) : [];
  for (const { files, bytes } of parts) {
    amount.files += files;
    amount.bytes += bytes;
  }
  if (items instanceof PlannedItems) return amount;
  for (const { size } of filesAmong(items)) {
    amount.files += 1;
    amount.bytes += size;
  }
  return amount;
}

function* filesAmong(items: Iterable<PlannedItem>): Generator<ListedFile, undefined> {
  for (const item of items) if (item.kind === "entry" && item.entry.type === "file") yield item.entry;
}
