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
import { keysAtOnce, type TargetKeys } from "./target-keys.ts";

/** Removes images and layers of targets that have ended, once no other target needs them. */
export interface DroppedImages {
  /** Notes that a target is built. `isPushed`: its image is in a registry, or nobody has asked for it. */
  end(target: ResolvedTarget, result: Performed, isPushed: boolean): Promise<void>;
}

interface Dropping {
  connection: () => Promise<Pick<Connection, "service" | "store">>;
  log: Pick<Log, "warn">;
  /** Makes room as `BOUGH_KEEP` says. */
  makeRoom(): void;
  signal: AbortSignal;
}

/** Something that a target has made on the service, and the targets that are still to be built with it. */
interface Made {
  users: number;
  images: Set<string>;
}

/**
 * `--drop-pushed`: keeps the disk of a large set flat. Which layers targets share is known by what their keys are made of before any of
 * them is built. A target that has failed keeps its layers: the next bake goes on from there.
 */
export async function createDroppedImages(
  targets: readonly ResolvedTarget[],
  keys: TargetKeys,
  { connection, log, makeRoom, signal }: Dropping,
): Promise<DroppedImages> {
  const made = new Map<string, Made>();
  /** In how many places of `made` each image is. A step that changes no file has the image of the step before. */
  const places = new Map<string, number>();
  const uses = new Map<string, readonly string[]>();
  /** Images of FROM that no target has made. They stay. */
  const bases = new Set<string>();
  /** Tags that targets have set. What has others, of another command, keeps them. */
  const ownTags = new Set<string>();
  let isRefused = false;
  const found = new Map<string, BuildKey | undefined>();
  await forEachConcurrently(targets, keysAtOnce, signal, async (target) => {
    const key = await keys.keyOf(target).catch((error: unknown) => {
      // Its own build says what is wrong.
      if (error instanceof BoughError && error.kind !== "interrupted") return undefined;
      throw error;
    });
    found.set(target.name, key);
  });
  for (const target of targets) {
    const key = found.get(target.name);
    const own = key === undefined ? [] : [...layersOf(key).values(), imageOf(target.name)];
    const all = new Set([...own, ...target.needs.flatMap((name) => uses.get(name) ?? [])]);
    uses.set(target.name, [...all]);
    for (const name of all)
      made.getOrInsertComputed(name, () => ({ users: 0, images: new Set() })).users += 1;
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

  /** Notes which images a target has made, and which were there. */
  async function noteMade(
    target: ResolvedTarget,
    { image, platforms = [], steps }: Performed,
  ): Promise<void> {
    const layers = layersOf(await keys.keyOf(target));
    for (const { step, image } of steps) {
      if (image === null) continue;
      const layer = layers.get(step);
      if (layer !== undefined) hold(layer, image);
      else if (!places.has(image)) bases.add(image);
    }
    // After its steps: a target that changes nothing has the image of its FROM.
    for (const each of [image, ...platforms.map((platform) => platform.image)])
      hold(imageOf(target.name), each);
  }

  function hold(name: string, image: string): void {
    const images = made.get(name)?.images;
    if (images === undefined || images.has(image)) return;
    images.add(image);
    places.set(image, (places.get(image) ?? 0) + 1);
  }

  /** Returns the images that nobody needs any more once a target is pushed. */
  function release(name: string): string[] {
    const unused = new Set<string>();
    // The image before its layers, and the last of these first.
    for (const each of [...(uses.get(name) ?? [])].reverse()) {
      const entry = made.get(each);
      if (entry === undefined || --entry.users > 0) continue;
      made.delete(each);
      for (const image of entry.images) {
        const left = (places.get(image) ?? 1) - 1;
        if (left > 0) places.set(image, left);
        else places.delete(image);
        unused.add(image);
      }
    }
    return [...unused].filter((image) => !places.has(image));
  }

  return {
    async end(target, result, isPushed) {
      await noteMade(target, result);
      for (const tag of result.tags) ownTags.add(tag);
      makeRoom();
      if (!isPushed) return;
      const unused = release(target.name);
      try {
        if (!isRefused) await remove(unused);
      } catch (error) {
        if (error instanceof BoughError && error.kind === "interrupted") throw error;
        log.warn(`what is pushed stays: ${messageOf(error)}`);
        isRefused = true;
      }
    },
  };
}

function imageOf(name: string): string {
  return `image of ${name}`;
}

/** Returns the layers of all platforms by the numbers of steps in results, which count on from one platform to the next. */
function layersOf({ platforms }: BuildKey): Map<number, string> {
  return new Map(
    platforms.flatMap(({ target: { layers, steps } }, at) =>
      [...layers].map(([step, hash]) => [step + at * steps, hash] as const),
    ),
  );
}
