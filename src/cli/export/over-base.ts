import { open } from "node:fs/promises";
import { join } from "node:path";
import { notedBase } from "../../builder/bases/noted-base.ts";
import type { Platform } from "../../builder/bases/platform.ts";
import { messageOf } from "../../errors.ts";
import type { LayerContent } from "../../image/image-writer.ts";
import { layerDifference } from "../../image/layer-difference.ts";
import type { Service } from "../../service/client.ts";
import type { FactStore } from "../../store/facts.ts";
import type { Log } from "../../terminal/log.ts";
import type { Runtime } from "../process/runtime.ts";
import { type BaseFacts, fetchBase, indexBase, type RegistryBase } from "./registry-base.ts";
import { openScratch } from "./scratch.ts";

interface BaseOptions {
  service: Pick<Service, "openArchive">;
  store: { facts: FactStore };
  platform: Platform;
  runtime: Runtime;
  log: Log;
  onProgress: (message: string) => void;
}

export interface ImageOverBase {
  base: BaseFacts;
  /** The base's layers, the lowest first, and the image's own. Nothing is fetched before one is opened. */
  layers: readonly LayerContent[];
  /** Removes the fetched files. */
  close(): void;
}

/**
 * Opens an image of a service that keeps no layers. Its layers are those of its base, and one of its own: the difference of its
 * files from the base's, which is right even if the base has changed in its registry. Returns `undefined` if there is no known
 * base, or it can't be fetched.
 */
export async function openOverBase(image: string, options: BaseOptions): Promise<ImageOverBase | undefined> {
  const { store, log, runtime } = options;
  const url = notedBase(image, store);
  if (url === undefined) return undefined;
  const scratch = openScratch("base", runtime.environment);
  const directory = scratch.path;
  const close = () => scratch[Symbol.dispose]();
  let fetched: Promise<RegistryBase> | undefined;
  const fetchOnce = () => {
    if (fetched !== undefined) return fetched;
    options.onProgress(`fetching the layers of ${url}`);
    fetched = fetchBase(url, directory, options);
    return fetched;
  };
  try {
    // The base's layers are remembered: the same image must have the same ones, and a push may not need to fetch them.
    const known = store.facts.get(image, question);
    const facts = known === undefined ? factsOf(await fetchOnce()) : (JSON.parse(known) as BaseFacts);
    if (known === undefined) store.facts.set(image, question, JSON.stringify(facts));
    const blobs = facts.layers;
    const base = blobs.map(
      (blob): LayerContent => ({
        id: blob.digest,
        stored: blob,
        open: async () => (await fetchOnce()).open(blob),
      }),
    );
    const own: LayerContent = {
      id: [image, "over", ...blobs.map(({ digest }) => digest)].join(" "),
      async open() {
        const tree = await indexBase({ layers: blobs, open: (await fetchOnce()).open });
        const archive = join(directory, "archive");
        await spool(await options.service.openArchive(image, "/"), archive, runtime.signal);
        return layerDifference(tree, archive);
      },
    };
    return { base: facts, layers: [...base, own], close };
  } catch (error) {
    close();
    runtime.signal.throwIfAborted();
    log.warn(
      `the image is exported as one layer, because the layers of its base cannot be fetched: ${messageOf(error)}`,
    );
    return undefined;
  }
}

const question = "base in the registry";

function factsOf({ layers, config, history }: RegistryBase): BaseFacts {
  return { layers, config, history };
}

async function spool(chunks: ReadableStream<Uint8Array>, path: string, signal: AbortSignal): Promise<void> {
  await using file = await open(path, "w", 0o600);
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    await file.writeFile(chunk);
  }
}
