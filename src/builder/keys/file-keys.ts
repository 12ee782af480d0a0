import { posix } from "node:path";
import type { AddInstruction, CopyInstruction, RunInstruction } from "../../dockerfile/instruction.ts";
import { createPace } from "../../pace.ts";
import { rowOf } from "../cache/chain-hash.ts";
import { hashMatches } from "../copy/hash-sources.ts";
import type { PlannedCopy } from "../copy/plan.ts";
import type { PlannedItem } from "../copy/planned-items.ts";
import { stageEntry, stageText } from "../copy/staged-items.ts";
import { expandMounts, mountedDirectory } from "../mounts/mount-support.ts";
import { stageMountedFiles } from "../mounts/mounted-files.ts";
import { type MountInput, mountsKey } from "../mounts/run-mounts.ts";
import { root } from "../owners/ownership.ts";
import { variableLookup } from "../state/scope.ts";
import type { StageState } from "../state/state.ts";
import type { KeyJob } from "./key-job.ts";

/** No file is sent. */
const eagerUploads = { offer: () => undefined };

/** Returns the SHA-256 of all sources of a COPY or ADD: files, URLs, repositories and here-documents. In hex. */
export async function hashCopiedFiles(
  instruction: CopyInstruction | AddInstruction,
  { words, plan }: Pick<PlannedCopy, "words" | "plan">,
  job: KeyJob,
): Promise<string> {
  const { signal, clock } = job;
  const { dialect } = job.asked;
  const { matches } = plan.items;
  if (dialect.copiesAsBuildKit) for (const { entries } of matches) entries.groupLinks();
  const cache = job.source.hashes;
  await hashMatches(matches, { signal, clock, cache, eagerUploads, inputs: undefined });
  const hasher = new Bun.CryptoHasher("sha256");
  const pace = createPace(signal);
  const firsts = new Map<symbol, string>();
  for (const item of plan.items) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    const row = await rowFor(item, { words, firsts, line: instruction.range.start }, job);
    hasher.update(`${JSON.stringify(row)}\n`);
  }
  return hasher.digest("hex");
}

interface RowOptions extends Pick<PlannedCopy, "words"> {
  firsts: Map<symbol, string>;
  line: number;
}

/** Returns what is hashed of an item. `--chown` counts as written: the base and earlier RUNs, which resolve it, are in the key. */
async function rowFor(
  item: PlannedItem,
  { words, firsts, line }: RowOptions,
  job: KeyJob,
): Promise<unknown[]> {
  const owned = { ...root, line };
  switch (item.kind) {
    case "entry": {
      if (item.isSourceRoot) return [item.path, "source"];
      const row = rowOf(item.path, stageEntry(item, owned), firsts);
      // The image may have a directory at the destination, in which the file keeps its name.
      return item.isBelowSource ? row : [...row, posix.basename(item.entry.absolutePath)];
    }
    case "document":
      return [...rowOf(item.path, stageText(item.text, item.mode, owned), firsts), item.document.name];
    case "url":
      return [
        item.path,
        "url",
        words.checksum ?? (await job.hashUrl(item.url, job.access)),
        item.mode,
        posix.basename(new URL(item.url).pathname),
      ];
    case "repository": {
      const { address } = item;
      const { commit } = await job.findCommit(address, job.access);
      const { subdirectory, keepsGitDirectory = false, hasSubmodules, hasCommitTimes } = address;
      return [item.path, "git", commit, subdirectory, keepsGitDirectory, hasSubmodules, hasCommitTimes];
    }
  }
}

/** Returns what a RUN's mounts add to its hash; `undefined` if it has none. */
export async function hashMounts(
  instruction: RunInstruction,
  stage: StageState,
  job: KeyJob,
  sourceHash: (from: string) => Promise<string>,
): Promise<string | undefined> {
  if (instruction.mounts.length === 0) return undefined;
  const { asked, signal, clock } = job;
  const given = {
    lookup: variableLookup(stage),
    escape: asked.dockerfile.escape,
    workdir: stage.config.WorkingDir,
  };
  const mounts: MountInput[] = [];
  for (const spec of expandMounts(instruction, given)) {
    const directory = mountedDirectory(spec, asked.contexts);
    const from = spec.type === "bind" || spec.type === "cache" ? spec.from : undefined;
    if (from !== undefined && directory === undefined)
      mounts.push({ spec, source: { kind: "image", hash: await sourceHash(from) } });
    else if (spec.type !== "bind") mounts.push({ spec, source: undefined });
    else {
      const source = { ...job.source, ...(directory && (await directory.open({ signal }))) };
      const finding = {
        services: { signal, clock },
        source,
        asked,
        eagerUploads,
        inputs: undefined,
        emit: () => {},
      };
      mounts.push({
        spec,
        source: { kind: "files", files: await stageMountedFiles(spec.source, instruction, finding) },
      });
    }
  }
  return mountsKey(mounts, signal);
}
