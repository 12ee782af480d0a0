import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import { forgetOld } from "./database.ts";

/** What is known of images of the service, by image and question. */
export interface ImageMetadataCache {
  get(image: string, question: string): string | undefined;
  set(image: string, question: string, answer: string): void;
  /** Images that the service has listed before: one that is missing from a later list is gone. */
  readonly listedImages: { has(image: string): boolean; add(image: string): void };
  /** Names under which the service has listed an image. */
  readonly listedNames: { has(name: string): boolean; add(name: string): void };
  /** The version of HTTP that the service has chosen, with the time. */
  readonly protocol: { get(): string | undefined; set(answer: string): void };
}

export function createImageMetadataCache(database: Database, clock: Pick<Clock, "now">): ImageMetadataCache {
  const imageMetadata: ImageMetadataCache = {
    get: (image, question) =>
      database
        .query<{ answer: string }, [string, string]>(
          "SELECT answer FROM fact WHERE image = ? AND question = ?",
        )
        .get(image, question)?.answer,
    set(image, question, answer) {
      // A build without changes stores the same answers again. Writing them would cost it a sync or two.
      if (imageMetadata.get(image, question) === answer) return;
      const now = clock.now();
      // Answers about images are removed with their images, those about layers and names after a time: they can be found again.
      forgetOld(
        database,
        "fact",
        now,
        "(question LIKE 'layer blob %' OR question LIKE 'repository of %' OR question LIKE 'listed as %' OR question LIKE 'loaded into %')",
      );
      database
        .query("INSERT OR REPLACE INTO fact (image, question, answer, written_at) VALUES (?, ?, ?, ?)")
        .run(image, question, answer, now);
    },
    listedImages: {
      has: (image) => imageMetadata.get(image, listed) !== undefined,
      add: (image) => imageMetadata.set(image, listed, "yes"),
    },
    listedNames: {
      has: (name) => imageMetadata.get(ofService, listedAs(name)) !== undefined,
      add: (name) => imageMetadata.set(ofService, listedAs(name), "yes"),
    },
    protocol: {
      get: () => imageMetadata.get(ofService, protocol),
      set: (answer) => imageMetadata.set(ofService, protocol, answer),
    },
  };
  return imageMetadata;
}

const listed = "listed";
const listedAs = (name: string) => `${listed} as ${name}`;
const protocol = "protocol";
/** An answer about the service itself has no image. */
const ofService = "";

/**
 * The images that references name: imported by FROM or `bough images import`, or tagged. They are used if the service does not list
 * the image: a build would otherwise import it again, get another UUID, and lose the whole cache.
 */
export interface ImportMemory {
  get(reference: string): string | undefined;
  set(reference: string, image: string): void;
  forget(reference: string): void;
  forgetImage(image: string): void;
}

export function createImportMemory(database: Database): ImportMemory {
  return {
    get: (reference) =>
      database
        .query<{ image: string }, [string]>("SELECT image FROM import WHERE reference = ?")
        .get(reference)?.image,
    set(reference, image) {
      database.query("INSERT OR REPLACE INTO import (reference, image) VALUES (?, ?)").run(reference, image);
    },
    forget(reference) {
      database.query("DELETE FROM import WHERE reference = ?").run(reference);
    },
    forgetImage(image) {
      database.query("DELETE FROM import WHERE image = ?").run(image);
    },
  };
}

type Facts = Pick<ImageMetadataCache, "get" | "set">;

/**
 * Returns the address of the first repository, in the registry of `address` (`docker://HOST/NAME`), to which a layer was pushed: other
 * repositories of that registry can mount the layer from there.
 */
export function placeOfLayer(imageMetadata: Facts, layer: string, address: string): string | undefined {
  return imageMetadata.get(layer, questionAbout(address));
}

/** Stores that a repository has a layer, unless another one of its registry is stored. Ignores directories. */
export function notePlace(imageMetadata: Facts, layer: string, address: string): void {
  if (!address.startsWith("docker://")) return;
  if (placeOfLayer(imageMetadata, layer, address) === undefined)
    imageMetadata.set(layer, questionAbout(address), address);
}

/** Returns `docker://HOST`. */
export function registryOf(address: string): string {
  return /^docker:\/\/[^/]+/.exec(address)?.[0] ?? address;
}

function questionAbout(address: string): string {
  return `repository of ${registryOf(address)}`;
}
