import { BoughError, messageOf } from "../../../errors.ts";
import { forEachConcurrently } from "../../../service/http/concurrency.ts";
import { NotFoundError, StatusError } from "../../../service/http/errors.ts";
import type { Log } from "../../../terminal/log.ts";
import type { BuildKey } from "../../builds/keys/build-key.ts";
import type { Performed } from "../../builds/perform-build.ts";
import { tagsOf } from "../../references/image-argument.ts";
import { workingBranchesOf } from "../../references/working-branch.ts";
import type { Connection } from "../../service/connection.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { maxConcurrentKeys, type TargetKeys } from "./target-keys.ts";

/** Removes images and layers of targets once no other target needs them. */
export interface DroppedImages {
  /** Records that a target is built. `isPushed`: its image is in a registry, or was not asked for. */
  end(target: ResolvedTarget, result: Performed, isPushed: boolean): Promise<void>;
}

interface DropOptions {
  connection: () => Promise<Pick<Connection, "service" | "store">>;
  log: Pick<Log, "warn">;
  /** Makes room as `BOUGH_KEEP` says. */
  makeRoom(): void;
  signal: AbortSignal;
}

/** The images of a layer or of a target on the service. */
interface ProducedImages {
  /** The number of targets that need them and have not ended yet. */
  pendingTargets: number;
  images: Set<string>;
}

/**
 * `--drop-pushed`: limits the disk space of a large set. The content keys tell which layers targets share before any of them is built.
 * A target that has failed keeps its layers, so that the next bake continues from there.
 */
export async function createDroppedImages(
  targets: readonly ResolvedTarget[],
  keys: TargetKeys,
  { connection, log, makeRoom, signal }: DropOptions,
): Promise<DroppedImages> {
  const produced = new Map<string, ProducedImages>();
  /** The number of entries of `produced` that have an image. A step that changes no file has the image of the step before. */
  const holders = new Map<string, number>();
  const namesByTarget = new Map<string, readonly string[]>();
  /** Images of FROM that no target has produced. They are kept. */
  const bases = new Set<string>();
  /** Tags that targets have set. An image that has another tag, of another command, is kept. */
  const ownTags = new Set<string>();
  let hasFailed = false;
  const found = new Map<string, BuildKey | undefined>();
  await forEachConcurrently(targets, maxConcurrentKeys, signal, async (target) => {
    const key = await keys.keyOf(target).catch((error: unknown) => {
      // The target's build reports the error.
      if (error instanceof BoughError && error.kind !== "interrupted") return undefined;
      throw error;
    });
    found.set(target.name, key);
  });
  for (const target of targets) {
    const key = found.get(target.name);
    const own = key === undefined ? [] : [...layersOf(key).values(), imageOf(target.name)];
    const all = new Set([...own, ...target.needs.flatMap((name) => namesByTarget.get(name) ?? [])]);
    namesByTarget.set(target.name, [...all]);
    for (const name of all)
      produced.getOrInsertComputed(name, () => ({
        pendingTargets: 0,
        images: new Set(),
      })).pendingTargets += 1;
  }

  async function remove(images: readonly string[]): Promise<void> {
    const { service, store } = await connection();
    const removed: string[] = [];
    for (const image of images) {
      try {
        const tags = await tagsOf(image, { service });
        const isKept = bases.has(image) || workingBranchesOf(image, store).length > 0;
        if (!isKept && tags.every((tag) => ownTags.has(tag))) {
          await service.removeImage(image);
          removed.push(image);
        } else for (const tag of tags) if (ownTags.has(tag)) await service.removeTag(image, tag);
      } catch (error) {
        // It is gone already, or another build uses it.
        const isLeft =
          error instanceof NotFoundError || (error instanceof StatusError && error.status === 409);
        if (!isLeft) throw error;
      }
    }
    store.sessions.forgetImages(removed);
    store.forgetImages(removed);
  }

  /** Records the images that a target has produced, and its bases. */
  async function recordImages(
    target: ResolvedTarget,
    { image, platforms = [], steps }: Performed,
  ): Promise<void> {
    const layers = layersOf(await keys.keyOf(target));
    for (const { step, image } of steps) {
      if (image === null) continue;
      const layer = layers.get(step);
      if (layer !== undefined) addImage(layer, image);
      else if (!holders.has(image)) bases.add(image);
    }
    // After its steps: a target that changes nothing has the image of its FROM.
    for (const each of [image, ...platforms.map((platform) => platform.image)])
      addImage(imageOf(target.name), each);
  }

  function addImage(name: string, image: string): void {
    const images = produced.get(name)?.images;
    if (images === undefined || images.has(image)) return;
    images.add(image);
    holders.set(image, (holders.get(image) ?? 0) + 1);
  }

  /** Returns the images that no target needs any more once this one is pushed. */
  function release(name: string): string[] {
    const unused = new Set<string>();
    // The image before its layers, and the last of these first.
    for (const each of [...(namesByTarget.get(name) ?? [])].reverse()) {
      const entry = produced.get(each);
      if (entry === undefined || --entry.pendingTargets > 0) continue;
      produced.delete(each);
      for (const image of entry.images) {
        const left = (holders.get(image) ?? 1) - 1;
        if (left > 0) holders.set(image, left);
        else holders.delete(image);
        unused.add(image);
      }
    }
    return [...unused].filter((image) => !holders.has(image));
  }

  return {
    async end(target, result, isPushed) {
      await recordImages(target, result);
      for (const tag of result.tags) ownTags.add(tag);
      makeRoom();
      if (!isPushed) return;
      const unused = release(target.name);
      try {
        if (!hasFailed) await remove(unused);
      } catch (error) {
        if (error instanceof BoughError && error.kind === "interrupted") throw error;
        log.warn(`pushed images are not removed: ${messageOf(error)}`);
        hasFailed = true;
      }
    },
  };
}

function imageOf(name: string): string {
  return `image of ${name}`;
}

/** Returns the layers of all platforms by step number. The numbers of a platform's steps follow those of the platform before. */
function layersOf({ platforms }: BuildKey): Map<number, string> {
  return new Map(
    platforms.flatMap(({ target: { layers, steps } }, at) =>
      [...layers].map(([step, hash]) => [step + at * steps, hash] as const),
    ),
  );
}
