import { existsSync, lstatSync, mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BoughError, messageOf } from "../../errors.ts";
import { createPace } from "../../pace.ts";
import { type CacheContents, cacheKeyOf } from "../../service/wire/mount.ts";
import { sha256Of } from "../../sha256.ts";
import { copySource } from "../copies/copy-from-image.ts";
import { openLayerTree } from "../copies/fill-upper.ts";
import { UpperTree } from "../copies/upper-tree.ts";
import { cacheDirectory, forgetCache, placeCache, takeCache } from "../records/caches.ts";
import type { Image } from "../records/images.ts";
import { LayerTree } from "../sandbox/root/layer-tree.ts";
import type { EngineState } from "../state.ts";
import { setOwnerAndModeAt } from "../system/owner-and-mode.ts";
import type { CacheMount, RequestedMount } from "./requested-mount.ts";

/** Returns the key that identifies a cache, by BuildKit's rules. */
export function cacheKey(
  { id, uid, gid, mode, source, realm }: CacheMount,
  image: Image | undefined,
): string {
  if (image === undefined) return cacheKeyOf({ id, uid, gid, mode, realm });
  return sha256Of(JSON.stringify([id, image.layer, source, ...(realm === undefined ? [] : [realm])]));
}

/** The use of a cache by an operation. */
interface CacheUse {
  key: string;
  image: Image | undefined;
  operation: string;
  signal: AbortSignal;
  report: (message: string) => void;
  warn: (message: string) => void;
  unpack: UnpackContents;
}

/** Fetches the archive of a cache and unpacks it into a new directory. */
export type UnpackContents = (
  archive: CacheContents & { name: string },
  directory: string,
  signal: AbortSignal,
) => Promise<void>;

/** The time between two attempts to take a cache that another command is using. */
const retryMilliseconds = 100;

/**
 * Takes a cache for an operation, fills it if it is new, and returns its directory. The operation keeps it until `releaseCaches`.
 *
 * @throws the abort reason of `signal`, also while another command holds a locked cache
 */
export async function prepareCache(
  state: EngineState,
  mount: CacheMount & Pick<RequestedMount, "target">,
  use: CacheUse,
): Promise<string> {
  const { database, layout, clock } = state;
  const { key, operation, signal } = use;
  const { sharing, generation } = mount;
  const take = () =>
    takeCache({ database, layout }, { key, sharing, generation, operation, now: clock.now() });
  let name = take();
  for (; name === undefined; name = take()) {
    await clock.sleep(retryMilliseconds, signal).catch((cause: unknown) => {
      const reason = `the cache ${JSON.stringify(mount.id)} is locked by another command`;
      throw new BoughError(`${reason}: ${messageOf(cause)}`, { cause });
    });
  }
  const directory = cacheDirectory(layout, name);
  if (!existsSync(directory)) {
    const made = join(layout.scratch, crypto.randomUUID());
    try {
      if (!(await restoreContents(mount, made, use))) await fillCache(state, mount, made, use);
      placeCache(database, layout, name, made);
    } catch (error) {
      forgetCache(database, name, operation);
      throw error;
    } finally {
      await rm(made, { recursive: true, force: true });
    }
  }
  return directory;
}

/** Fills a cache with the contents that were saved of it elsewhere. Returns false if there are none, or if fetching them fails. */
async function restoreContents(
  { id, contents }: CacheMount,
  directory: string,
  { image, signal, report, warn, unpack }: CacheUse,
): Promise<boolean> {
  if (contents === undefined || image !== undefined) return false;
  const name = `the cache ${JSON.stringify(id)}`;
  try {
    report(`Fetching ${name} (${(contents.size / 1_000_000).toFixed(1)} MB) from ${contents.source}`);
    await unpack({ ...contents, name }, directory, signal);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    warn(`${name} is empty at first: ${messageOf(error)}`);
    await rm(directory, { recursive: true, force: true });
    return false;
  }
}

async function fillCache(
  state: EngineState,
  { mode, uid, gid, source, target }: CacheMount & Pick<RequestedMount, "target">,
  directory: string,
  { image, signal }: { image: Image | undefined; signal: AbortSignal },
): Promise<void> {
  mkdirSync(directory);
  setOwnerAndModeAt(directory, { uid, gid }, { mode });
  if (image === undefined) return;
  const from = openLayerTree(state, image);
  const path = `/${new UpperTree(state.layout.empty, from).resolve(source).join("/")}`;
  const [uppermost] = from.enterPath(path);
  if (uppermost === undefined)
    throw new BoughError(
      `cannot fill the cache at ${target} from ${source}: the image has no such directory`,
    );
  const stats = lstatSync(uppermost.path);
  setOwnerAndModeAt(directory, stats, stats);
  const to = new UpperTree(directory, new LayerTree([], state.inUserNamespace));
  const selected = { path, name: "", type: "directory", filters: [] } as const;
  await copySource(
    selected,
    { destination: "/", owner: undefined, changeMode: undefined },
    { from, to, pace: createPace(signal) },
  );
}
