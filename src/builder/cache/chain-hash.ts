import { edenGC } from "bun:jsc";
import { TextColumn } from "../../columns/text-column.ts";
import type { ImageConfig } from "../../image/config.ts";
import type { ImageOrigin } from "../../image/history.ts";
import { defaultPlatform } from "../../image/platform.ts";
import { createPace } from "../../pace.ts";
import { isUuid } from "../../service/images/reference.ts";
import type { FoundImage, ImageService } from "../../service/service.ts";
import { sha256Of } from "../../sha256.ts";
import { effectiveEnv } from "../state/scope.ts";
import type { Staged, StagedEntry } from "../state/staged.ts";
import type { StepKey } from "./step-key.ts";

/** The version of the hashed format. Every change of meaning increments it, so that no layer of the old format is found. */
const formatVersion = 3;

/**
 * Returns SHA-256 over the parts of a key, in hex. The input is canonical JSON, in which no two different inputs look alike: every
 * field is delimited, and maps are sorted. File contents are hashed; time stamps and the service's own ids are not.
 */
export async function chainHash(key: StepKey, signal?: AbortSignal): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(chainHashHead(key).slice(0, -1));
  hasher.update(",[");
  await hashRows(hasher, key.files, signal);
  const hash = hasher.update("]]").digest("hex");
  return key.source === undefined ? hash : sha256Of(`${hash} ${key.source.hash}`);
}

/** Returns everything that is hashed except the files and the source of a `COPY --from`, as JSON. */
export function chainHashHead(key: StepKey): string {
  const { args, env, user, workdir } = hashedState(key);
  const state = {
    args: sorted(Array.from(args, ([name, value]) => (value === undefined ? [name] : [name, value]))),
    env: sorted([...env]),
    user,
    workdir,
  };
  return JSON.stringify([formatVersion, key.parent.hash, state, directiveOf(key)]);
}

/** Returns the variables, user and directory that a key covers. A key without state has the default ones. */
export function hashedState({ state = noState }: Pick<StepKey, "state">) {
  const { args, env, config } = state;
  return {
    args: new Map(Array.from(args, ([name, { value }]) => [name, value])),
    env: effectiveEnv({ args, env }),
    user: config.User ?? null,
    workdir: config.WorkingDir,
  };
}

const noState: NonNullable<StepKey["state"]> = {
  args: new Map(),
  env: new Map(),
  config: { WorkingDir: "/" },
};

/** Returns the instruction as it is hashed: its name with options, then its words. */
export function directiveOf({
  instruction,
  options = [],
  mounts,
  command = [],
  userLookUp,
  copy,
}: StepKey): string[] {
  const words = options.map(({ text }) => text);
  if (mounts !== undefined) words.push(`--mount=${mounts.key}`);
  return [
    ...(userLookUp === undefined ? [] : [userLookUp]),
    [instruction, ...words].join(" "),
    ...command,
    ...(copy === undefined ? [] : [JSON.stringify(copy)]),
  ];
}

/** Returns SHA-256 of files outside the layer, those of mounts, in hex. */
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
  // A column, because strings would stay in memory: the collector rarely examines what has survived its first collection.
  const paths = TextColumn.of([...staged.keys()].sort());
  /** The first path of every file that has several hard links. */
  const firsts = new Map<symbol, string>();
  // In batches, because one JSON text for a large context takes much memory and time.
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
/** The rows of a batch are garbage right away; without a collection they would pile up. */
const rowsBetween = 10_000;

/**
 * Returns the chain hash of a FROM. It covers only the image, identified in a way that holds on every machine. If the service
 * does not return an image's identity, its UUID counts, with the default platform.
 */
export function baseHash({ uuid, identity }: FoundImage, { base }: Pick<ImageService, "base">): string {
  // Some services write the same UUID in lower case at one time and in upper case at another.
  const image = identity ?? `${defaultPlatform} ${isUuid(uuid) ? uuid.toLowerCase() : uuid} ${base}`;
  return sha256Of(JSON.stringify([formatVersion, "FROM", image]));
}

/** Returns the chain hash of a layer that gives an image, by its UUID, a configuration, and an author and history if they are stored. */
export function configurationHash(
  image: string,
  config: ImageConfig,
  origin: ImageOrigin | undefined,
): string {
  return sha256Of(JSON.stringify(["configuration", image, config, origin]));
}

/** Returns what is hashed of an entry. `firsts`: gets the first path of every file that has several hard links. */
export function rowOf(path: string, entry: StagedEntry | undefined, firsts: Map<symbol, string>): unknown[] {
  const row = plainRowOf(path, entry, firsts);
  const { attributes, replaces, names } = entry ?? {};
  if (names !== undefined) row.push({ names });
  if (attributes === undefined && replaces === undefined) return row;
  return [...row, { attributes: sorted(Object.entries(attributes ?? {})), replaces: replaces ?? false }];
}

function plainRowOf(path: string, entry: StagedEntry | undefined, firsts: Map<symbol, string>): unknown[] {
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
    case "special": {
      const { kind, uid, gid, mode } = entry;
      const device = kind === "pipe" ? [] : [entry.major, entry.minor];
      return [path, "special", kind, uid, gid, mode, ...device];
    }
    case undefined:
      throw new Error(`nothing is staged at ${path}`);
  }
}

/** Sorts by the first field, which is unique: a name or a path. Compares code units, so that the locale has no influence. */
function sorted<Row extends readonly [string, ...unknown[]]>(rows: Row[]): Row[] {
  return rows.sort((one, other) => (one[0] < other[0] ? -1 : 1));
}
