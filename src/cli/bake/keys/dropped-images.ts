import { BoughError, messageOf } from "../../../errors.ts";
import { NotFoundError, StatusError } from "../../../service/http/errors.ts";
import type { Log } from "../../../terminal/log.ts";
import type { BuildKey } from "../../builds/keys/build-key.ts";
import type { Performed } from "../../builds/perform-build.ts";
import type { Connection } from "../../service/connection.ts";
import type { ResolvedTarget } from "../resolve.ts";
import type { TargetKeys } from "./target-keys.ts";

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
  targets: Iterable<ResolvedTarget>,
  keys: TargetKeys,
  { connection, log, makeRoom }: Dropping,
): Promise<DroppedImages> {
  const made = new Map<string, Made>();
  const uses = new Map<string, readonly string[]>();
  /** Images of FROM that no target has made. */
  const bases = new Set<string>();
  let isRefused = false;
  for (const target of targets) {
    const found = await keys.keyOf(target).catch((error: unknown) => {
      // Its own build says what is wrong.
      if (error instanceof BoughError && error.kind !== "interrupted") return undefined;
      throw error;
    });
    const own = found === undefined ? [] : [...layersOf(found).values(), imageOf(target.name)];
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
        await service.removeImage(image);
        removed.push(image);
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
    for (const each of [image, ...platforms.map((platform) => platform.image)])
      made.get(imageOf(target.name))?.images.add(each);
    const known = imagesIn(made);
    for (const { step, image } of steps) {
      if (image === null) continue;
      const layer = layers.get(step);
      if (layer !== undefined) made.get(layer)?.images.add(image);
      else if (!known.has(image)) bases.add(image);
    }
  }

  /** Returns the images that nobody needs any more once a target is pushed. */
  function release(name: string): string[] {
    const unused = new Set<string>();
    // The image before its layers, and the last of these first.
    for (const each of [...(uses.get(name) ?? [])].reverse()) {
      const entry = made.get(each);
      if (entry === undefined || --entry.users > 0) continue;
      made.delete(each);
      for (const image of entry.images) unused.add(image);
    }
    // A step that changes no file has the image of the step before.
    return [...unused.difference(imagesIn(made).union(bases))];
  }

  return {
    async end(target, result, isPushed) {
      await noteMade(target, result);
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

function imagesIn(made: ReadonlyMap<string, Made>): Set<string> {
  return new Set(made.values().flatMap(({ images }) => images));
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
