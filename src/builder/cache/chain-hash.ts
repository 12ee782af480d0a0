import { edenGC } from "bun:jsc";
import { createPace } from "../../pace.ts";
import type { FoundImage, ImageService } from "../../service/service.ts";
import { sha256Of } from "../../sha256.ts";
import { TextColumn } from "../../text-column.ts";
import { defaultPlatform } from "../bases/platform.ts";
import { effectiveEnv } from "../interpreter/scope.ts";
import type { StageState } from "../interpreter/state.ts";
import type { Staged, StagedEntry } from "../staging/staged.ts";

/** The version of what is hashed, and how. A new meaning gets a new number, so it never meets a layer of the old one. */
const formatVersion = 3;

/**
 * SHA-256 over the parent layer, the state, the directive and the staged files, in hex. The bytes are canonical JSON,
 * in which no two different inputs look alike: every field is delimited, and maps go in sorted order. Content counts,
 * time stamps and the service's own ids do not.
 */
export async function chainHash(
  stage: StageState,
  directive: readonly string[],
  signal?: AbortSignal,
): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(chainHashHead(stage, directive).slice(0, -1));
  hasher.update(",[");
  await hashRows(hasher, stage.staged, signal);
  return hasher.update("]]").digest("hex");
}

/** All that is hashed but the staged files, as JSON. */
export function chainHashHead(stage: Omit<StageState, "staged">, directive: readonly string[]): string {
  const state = {
    args: sorted(
      Array.from(stage.args, ([name, { value }]): [string, ...string[]] =>
        value === undefined ? [name] : [name, value],
      ),
    ),
    env: sorted([...effectiveEnv(stage)]),
    user: stage.config.User ?? null,
    workdir: stage.config.WorkingDir,
  };
  return JSON.stringify([formatVersion, stage.layer.hash, state, directive]);
}

/** SHA-256 of files that have a place of their own, in hex: of what is mounted. */
export async function stagedDigest(staged: Staged, signal?: AbortSignal): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  await hashRows(hasher, staged, signal);
  return hasher.digest("hex");
}

async function hashRows(
  hasher: InstanceType<typeof Bun.CryptoHasher>,
  staged: Staged,
  signal: AbortSignal | undefined,
): Promise<void> {
  const pace = createPace(signal);
  // As strings they would stay: the collector seldom looks at what has outlived its first collection.
  const paths = TextColumn.of([...staged.keys()].sort());
  /** The first path of files that may have several. */
  const firsts = new Map<symbol, string>();
  // A part at a time: of a large context, all of it takes a good deal of memory and time.
  for (let from = 0; from < paths.length; from += rowsInBatch) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    const rows = paths.slice(from, from + rowsInBatch).map((path) => rowOf(path, staged.get(path), firsts));
    if (from > 0) hasher.update(",");
    if (from > 0 && from % rowsBetween === 0) edenGC();
    hasher.update(JSON.stringify(rows).slice(1, -1));
  }
}

const rowsInBatch = 1000;
/** A batch's rows are garbage at once, which the collector would let pile up. */
const rowsBetween = 10_000;

/**
 * The chain hash of a FROM: nothing is below it but the image itself, in words that hold on every machine. A service that says
 * nothing of an image's identity has its UUID, and runs the one platform.
 */
export function baseHash({ uuid, identity }: FoundImage, { base }: Pick<ImageService, "base">): string {
  const image = identity ?? `${defaultPlatform} ${uuid} ${base}`;
  return sha256Of(JSON.stringify([formatVersion, "FROM", image]));
}

function rowOf(path: string, entry: StagedEntry | undefined, firsts: Map<symbol, string>): unknown[] {
  switch (entry?.type) {
    case "file": {
      const row = [path, "file", entry.sha256, entry.uid, entry.gid, entry.mode];
      if (entry.inode === undefined) return row;
      const first = firsts.get(entry.inode);
      if (first !== undefined) return [...row, first];
      firsts.set(entry.inode, path);
      return row;
    }
    case "directory":
      return [path, "directory", entry.uid, entry.gid, entry.mode, entry.isExplicit];
    case "symlink":
      return [path, "symlink", entry.target, entry.uid, entry.gid];
    case undefined:
      throw new Error(`nothing is staged at ${path}`);
  }
}

/** Sorts by the first field, which is unique: a name or a path. It compares code units, so that no locale plays a part. */
function sorted<Row extends readonly [string, ...unknown[]]>(rows: Row[]): Row[] {
  return rows.sort((one, other) => (one[0] < other[0] ? -1 : 1));
}
