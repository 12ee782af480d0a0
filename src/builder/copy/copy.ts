import { posix } from "node:path";
import type { HashOptions } from "../../context/hashing/hash.ts";
import type { ListedFile } from "../../context/sources/entry-list.ts";
import type { AddInstruction, CopyInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { sha256Of } from "../../sha256.ts";
import { mayUnpack } from "../archives/may-unpack.ts";
import type { Unpacking } from "../archives/unpack.ts";
import { titleOf } from "../interpreter/location.ts";
import type { StageState } from "../interpreter/state.ts";
import type { PlannedCopy } from "../interpreter/world.ts";
import type { BuildJob } from "../job.ts";
import { addFromUrl } from "../remote-files/download.ts";
import { ContextFile } from "../staging/context-file.ts";
import { DeferredFiles } from "../staging/deferred-files.ts";
import type { FoundSources } from "../staging/look-ahead.ts";
import type { Owned, Staged, StagedEntry, StagedFile } from "../staging/staged.ts";
import { copyState, noteState } from "./copy-state.ts";
import { hashMatches, hashSources } from "./hash-sources.ts";
import { stageDirectory } from "./made-directories.ts";
import { resolveFileOwner, root } from "./ownership.ts";
import {
  bringsDirectory,
  type CopyPlan,
  type PlannedDocument,
  type PlannedEntry,
  type PlannedItem,
  PlannedItems,
  type PlannedUrl,
} from "./plan.ts";
import { type Item, stageItems } from "./stage-items.ts";
import type { CopyWords } from "./words.ts";

/** What the sources come to is staged for the next RUN; of it only URLs go to the service already. */
export async function stageCopy(
  instruction: CopyInstruction | AddInstruction,
  { words, plan, isImageAsked }: PlannedCopy,
  { ahead, stage }: { ahead: FoundSources | undefined; stage: StageState },
  build: BuildJob,
): Promise<StageState> {
  const { destination, excluded, largeContext } = plan;
  const line = instruction.range.start;
  const title = titleOf(instruction);
  if (
    isImageAsked &&
    build.service.capabilities.lacks("inspect") &&
    plan.items[Symbol.iterator]().some((item) => mayGoInto(destination.path, item))
  ) {
    const { path } = destination;
    const message = `the service can't say whether ${path} is a directory in the image, so it is taken for a file: write ${path}/ to copy into a directory`;
    build.emit({ type: "warning", message, line });
  }
  if (build.mode === "docker") requireSources(plan);
  if (plan.isOneFile) requireFiles(instruction, plan, build);
  if (excluded.length > 0) build.emit({ type: "excluded", title, line, paths: excluded });
  if (largeContext !== undefined) build.emit({ type: "large-context", title, line, ...largeContext });
  const owner = words.chown === "" ? root : await resolveFileOwner(words.chown, line, stage, build);

  const owned = { ...owner, line };
  const stagePlain = async (
    some: Iterable<PlannedItem>,
    before: StageState,
    onProgress?: HashOptions["onProgress"],
  ) => {
    const { areSettled } = await hashEntries(some, build, ahead, onProgress);
    const urls = new Map<PlannedItem, StagedFile>();
    for (const item of some instanceof PlannedItems ? some.others : some)
      if (item.kind === "url") urls.set(item, await stageUrl(item, owned, words.checksum, build));
    const arriving = stagedItems(some, urls, owned);
    return { areSettled, ...(await stageItems(arriving, destination, { owner, line }, before, build)) };
  };
  const stageBetween = (some: Iterable<PlannedItem>, before: StageState) => {
    if (build.mode === "docker") requireSameKinds(some, before.staged);
    return stagePlain(some, before);
  };
  const unpacking = { destination, owner, line, words, stageBetween };
  const { items, ...unpacked } = await stageTrees(instruction, plan.items, unpacking, stage, build);

  if (build.mode === "docker") requireSameKinds(items, unpacked.stage.staged);
  const amount = amountOf(items);
  build.emit({ type: "hashing", ...amount });
  const stageAll = async (onProgress?: HashOptions["onProgress"]) => {
    const made = await stagePlain(items, unpacked.stage, onProgress);
    if (state !== undefined && made.areSettled) noteState(made.staged, state);
    return made;
  };
  const state = items === plan.items ? copyState({ words, plan, owner }, stage, build) : undefined;
  if (state !== undefined && build.useCache && build.fileStates.hasCopy(state.copy)) {
    build.emit({ type: "staged", title, ...amount });
    const staged = new DeferredFiles(amount.files, state.copy, async () => (await stageAll()).staged);
    return { ...stage, staged };
  }
  const { staged, ...copied } = await stageAll((done) => build.emit({ type: "hashed", ...done }));
  const all = { files: copied.files + unpacked.files, bytes: copied.bytes + unpacked.bytes };
  build.emit({ type: "staged", title, ...all });
  return { ...stage, staged };
}

/** Docker sends nothing that is ignored, and so does not find it. By default that is a warning. */
function requireSources({ warnings }: CopyPlan): void {
  const missing = warnings.find((warning) => warning.missing !== undefined)?.missing;
  if (missing === undefined) return;
  throw new BoughError(`no such file or directory in the build context: ${missing}`, {
    hint: "An ignore rule leaves it out. Remove the rule, or re-include the path by one that begins with !.",
  });
}

/** Several sources of one file: Docker leaves the last one there. By default that is taken for a mistake. */
function requireFiles(
  { name, range }: CopyInstruction | AddInstruction,
  plan: CopyPlan,
  { mode, emit }: BuildJob,
): void {
  const { path } = plan.destination;
  const hint = `Write ${path}/ instead.`;
  if (mode === "default")
    throw new BoughError(
      `${name} of several sources needs a directory as its destination: ${path} is none, and does not end in a slash`,
      { kind: "usage", hint },
    );
  if (bringsDirectory(plan)) throw new BoughError(`cannot copy to non-directory: ${path}`, { hint });
  const message = `all sources go to the one file ${path}, where the last is left, as in Docker: ${path}/ would be a directory`;
  emit({ type: "warning", message, line: range.start });
}

/** Docker puts no directory in a file's place, and no file in a directory's: what is staged counts as if it were in the image. */
function requireSameKinds(items: Iterable<PlannedItem>, staged: Staged): void {
  if (staged.size === 0) return;
  for (const item of items) {
    const before = staged.get(item.path);
    if (before === undefined) continue;
    const isDirectory = item.kind === "entry" && item.entry.type === "directory";
    const hint = `An instruction before has put a ${before.type} there.`;
    if (isDirectory && before.type !== "directory")
      throw new BoughError(`cannot copy to non-directory: ${item.path}`, { hint });
    if (!isDirectory && before.type === "directory")
      throw new BoughError(`cannot replace to directory ${item.path} with file`, { hint });
  }
}

interface TreeStaging extends Pick<Unpacking, "destination" | "owner" | "line"> {
  words: CopyWords;
  stageBetween(items: Iterable<PlannedItem>, stage: StageState): ReturnType<typeof stageItems>;
}

/**
 * Stages what the archives and repositories among the items hold, and what comes before them by `stageBetween`: a later source
 * replaces what an earlier one has at the same path. The items behind the last of them are left.
 */
async function stageTrees(
  instruction: CopyInstruction | AddInstruction,
  items: PlannedItems,
  { words, stageBetween, ...place }: TreeStaging,
  stage: StageState,
  build: BuildJob,
): Promise<{ items: Iterable<PlannedItem>; stage: StageState; files: number; bytes: number }> {
  const done = { stage, files: 0, bytes: 0 };
  const isTree = (item: PlannedItem) =>
    item.kind === "repository" || mayUnpack(instruction, item, build.mode);
  if (instruction.name === "COPY" || !items[Symbol.iterator]().some(isTree)) return { items, ...done };
  const add = ({ staged, files, bytes }: Awaited<ReturnType<typeof stageItems>>) => {
    done.stage = { ...done.stage, staged };
    done.files += files;
    done.bytes += bytes;
  };
  const others: PlannedItem[] = [];
  /** The stage with all that comes before a tree; not asked for where an item is none after all. */
  const reach = async () => {
    if (others.length > 0) add(await stageBetween(others.splice(0), done.stage));
    return done.stage;
  };
  const stageTree = async (item: PlannedItem) => {
    if (item.kind === "repository") {
      const { stageRepository } = await import("../repositories/stage-repository.ts");
      return stageRepository(item.address, { words, ...place }, reach, build);
    }
    const { stageArchive } = await import("../archives/unpack.ts");
    return stageArchive(item, { checksum: words.checksum, ...place }, reach, build);
  };
  for (const item of items) {
    const made = isTree(item) ? await stageTree(item) : undefined;
    if (made === undefined) others.push(item);
    else add(made);
  }
  return { items: others, ...done };
}

/** Returns whether a destination without a slash may well be meant as a directory: it looks like no name for this source. */
function mayGoInto(destination: string, item: PlannedItem): boolean {
  if (item.kind === "document" || item.kind === "repository") return false;
  const source = item.kind === "url" ? new URL(item.url).pathname : item.entry.absolutePath;
  return posix.extname(destination) === "" && posix.basename(source) !== posix.basename(destination);
}

async function hashEntries(
  items: Iterable<PlannedItem>,
  { signal, clock, hashes, early, inputs }: BuildJob,
  ahead: FoundSources | undefined,
  onProgress: HashOptions["onProgress"] = () => undefined,
): Promise<{ areSettled: boolean }> {
  const options = { signal, clock, cache: hashes, onProgress, early, inputs };
  if (items instanceof PlannedItems)
    return (await ahead?.hashes(onProgress)) ?? (await hashMatches(items.matches, options));
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

/** Each when its turn comes: of a large context, all at once would be felt. */
function* stagedItems(
  items: Iterable<PlannedItem>,
  urls: ReadonlyMap<PlannedItem, StagedFile>,
  owned: Required<Owned>,
): Generator<Item, undefined> {
  for (const item of items) {
    const { path } = item;
    switch (item.kind) {
      case "entry": {
        const entry = item.isSourceRoot ? undefined : stageEntry(item, owned);
        yield { path, entry };
        break;
      }
      case "document":
        yield { path, entry: stageDocument(item, owned) };
        break;
      case "url":
        yield { path, entry: urls.get(item) };
        break;
      case "repository":
        throw new Error("a repository is staged as a tree");
    }
  }
}

/** An entry of the context as it is staged; a file has been hashed. */
export function stageEntry(
  { entry, mode }: Pick<PlannedEntry, "entry" | "mode">,
  owned: Required<Owned>,
): StagedEntry {
  // Named one by one they are kept in the object itself, which is felt where there are many of them.
  const { uid, gid, line } = owned;
  switch (entry.type) {
    case "symlink":
      return { type: "symlink", target: entry.target, uid, gid, line };
    case "directory":
      return stageDirectory(mode, owned);
    case "file":
      return new ContextFile(entry, mode, owned);
  }
}

function stageDocument({ text, mode }: PlannedDocument, owned: Required<Owned>): StagedFile {
  const bytes = new TextEncoder().encode(text);
  const sha256 = sha256Of(bytes);
  return { type: "file", sha256, size: bytes.length, mode, content: { kind: "text", text }, ...owned };
}

async function stageUrl(
  { url, mode }: PlannedUrl,
  owned: Required<Owned>,
  checksum: string | undefined,
  build: BuildJob,
): Promise<StagedFile> {
  const { sha256, size, lastModified } = await addFromUrl(url, checksum, build);
  const said = Date.parse(lastModified ?? "") / 1000;
  // Docker's: a file of which the server tells no time is of 1970.
  const mtime = Number.isNaN(said) ? 0 : Math.max(said, 0);
  return { type: "file", sha256, size, mode, content: { kind: "url", url }, mtime, ...owned };
}
