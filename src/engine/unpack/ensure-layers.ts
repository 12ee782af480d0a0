import { mkdirSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { decompress, detectLayerCompression, peekBeginning } from "../../image/compression.ts";
import { readLayerTar } from "../../image/tar-reader.ts";
import type { CacheContents } from "../../service/wire/mount.ts";
import { sandboxSpid } from "../../service/wire/operation.ts";
import { tap } from "../../streams.ts";
import { RequestError } from "../http/responses.ts";
import { openGuardedSource } from "../import/fetch-blobs.ts";
import { requireAcceptedRepository } from "../import/signature-policy.ts";
import { createBudget } from "../import-limits.ts";
import { absentBlobs, absentLayersOf, unreachableReason } from "../records/absent-layers.ts";
import { type Image, UnusableImageError } from "../records/images.ts";
import { findOperation } from "../records/operations.ts";
import { startOperation } from "../run-operation.ts";
import type { EngineState, FetchWaiter, LayerFetch } from "../state.ts";
import { LayerWriter } from "./layer-writer.ts";

type WantedImage = Pick<Image, "uuid" | "layer">;

/**
 * Waits until the files of all layers of the images are here, and fetches those that are not. Call it before anything touches a
 * layer's directory. A layer that several need is fetched once. If one image fails, this does not wait for the others.
 *
 * @throws RequestError (424) if a layer can't be fetched
 */
export async function ensureImages(
  state: EngineState,
  images: readonly WantedImage[],
  waiter: FetchWaiter,
): Promise<void> {
  const settled = new AbortController();
  const signal = AbortSignal.any([waiter.signal, settled.signal]);
  try {
    await Promise.all(images.map((image) => ensureLayers(state, image, { ...waiter, signal })));
  } finally {
    settled.abort();
  }
}

/** The time that a request waits: less than clients wait for a response. */
const maxWaitMilliseconds = 20_000;

/**
 * Does what `ensureImages` does, for a request without an operation. Throws a RequestError (425) if it takes long: the client asks again,
 * as long as the message changes, and the layers are fetched meanwhile.
 */
export async function ensureForRequest(state: EngineState, image: WantedImage): Promise<void> {
  if (absentLayersOf(state.database, image.layer).length === 0) return;
  const over = new AbortController();
  let reported = "";
  const report = (message: string) => {
    reported = `: ${message}`;
  };
  const timeout = state.clock.sleep(maxWaitMilliseconds, over.signal).then(() => {
    const headers = { "Retry-After": "1" };
    const text = `the layers of image ${image.uuid} are still being fetched${reported}`;
    throw new RequestError(425, text, headers);
  });
  timeout.catch(() => undefined);
  const fetched = ensureLayers(state, image, { signal: state.closing, report });
  fetched.catch(() => undefined);
  try {
    await Promise.race([fetched, timeout]);
  } finally {
    over.abort();
  }
}

async function ensureLayers(state: EngineState, image: WantedImage, waiter: FetchWaiter): Promise<void> {
  const { database, fetches } = state;
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    waiter.signal.throwIfAborted();
    const absent = absentLayersOf(database, image.layer);
    if (absent.length === 0) return;
    const reason = unreachableReason(state, absent);
    if (reason !== undefined) throw new UnusableImageError(image.uuid, reason);
    // Each fetch that succeeds has brought some of them, unless their records were edited.
    if (absent.length >= before) throw new BoughError(`the layers of image ${image.uuid} were not found`);
    const running = absent.map((layer) => fetches.get(layer)).find((each) => each !== undefined);
    const outcome = await (running ?? startFetch(state, image, absent)).join(waiter);
    if (outcome === "fetched") before = absent.length;
  }
}

/** Starts an operation that fetches layers, and ends when nothing waits for them any more. */
function startFetch(state: EngineState, { uuid, layer }: WantedImage, absent: readonly number[]): LayerFetch {
  const { database, fetches, running } = state;
  const waiters = new Set<FetchWaiter>();
  const blobs = absent.flatMap((id) => absentBlobs(state, id));
  const url = [...new Set(blobs.map(({ source }) => source))].join(" ");
  const beginning = describeFetch(blobs, url);
  let failure: unknown;
  const operation = startOperation(state, {
    kind: "image_import",
    metadata: { registry: { url }, tag: null },
    startImage: uuid,
    async perform(run) {
      const append = (message: string) => state.events.append(run.uuid, sandboxSpid, "progress", { message });
      const report = (message: string) => {
        append(message);
        for (const waiter of waiters) waiter.report(message);
      };
      try {
        append(beginning);
        // Loaded with the first fetch: most images are here.
        const { performFetch } = await import("./fetch-layers.ts");
        return await performFetch(state, { uuid, layer }, run, report);
      } catch (error) {
        failure = error;
        throw error;
      }
    },
  });
  const { cancel, ended } = running.get(operation) ?? { cancel: () => undefined, ended: Promise.resolve() };
  const done = ended.then(() => {
    for (const id of absent) fetches.delete(id);
  });

  let isAbandoned = false;
  async function outcome(): Promise<"fetched" | "not fetched"> {
    await done;
    const { status, error } = findOperation(database, operation) ?? {};
    if (status === "SUCCESS") return "fetched";
    // The unreachable layers are on record, and some waiters may not need them.
    if (failure instanceof Error && failure.name === "UnreachableLayersError") return "not fetched";
    throw failure ?? new BoughError(error ?? `fetching layers from ${url} was cancelled`);
  }

  const fetch: LayerFetch = {
    async join(waiter) {
      // The fetch is ending. The layers can be fetched again afterwards.
      if (isAbandoned) return done.then(() => "not fetched" as const);
      waiters.add(waiter);
      waiter.report(beginning);
      const { signal } = waiter;
      const left = Promise.withResolvers<never>();
      const leave = () => left.reject(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      try {
        return await Promise.race([outcome(), left.promise]);
      } finally {
        signal.removeEventListener("abort", leave);
        waiters.delete(waiter);
        if (waiters.size === 0) {
          isAbandoned = true;
          cancel();
        }
      }
    },
  };
  for (const id of absent) fetches.set(id, fetch);
  return fetch;
}

function describeFetch(blobs: readonly { size: number }[], url: string): string {
  const megabytes = blobs.reduce((sum, { size }) => sum + size, 0) / 1_000_000;
  return `Fetching ${blobs.length === 1 ? "1 layer" : `${blobs.length} layers`} (${megabytes.toFixed(1)} MB) from ${url}`;
}

/**
 * Fetches the archive of a cache and unpacks it into a new directory that nothing else uses yet. Rejects if the archive has another
 * digest: the directory must not be used then.
 */
export async function unpackCache(
  state: EngineState,
  { name, source, digest, size }: CacheContents & { name: string },
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  const { layout, importLimits, inUserNamespace } = state;
  const budget = createBudget(name, layout.directory, importLimits);
  const used = { content: 0, files: 0, entries: 0 };
  const check = () => {
    signal.throwIfAborted();
    budget.check({ bytes: Math.max(used.content, used.files), entries: used.entries });
  };
  if (source.startsWith("docker://")) requireAcceptedRepository(source, state.environment);
  using opened = await openGuardedSource(state, source);
  const { bytes, beginning } = await peekBeginning(await opened.store.openBlob({ digest, size }, signal));
  const plain = tap(decompress(bytes, detectLayerCompression(beginning, name), name), (chunk) => {
    used.content += chunk.byteLength;
    check();
  });
  mkdirSync(directory);
  const writer = new LayerWriter(directory, inUserNamespace);
  try {
    // The iterator has no `return`, so that the reader does not close the stream at the archive's end, which comes before the stream's.
    const stream = { [Symbol.asyncIterator]: () => ({ next: () => plain.next() }) };
    for await (const entry of readLayerTar(stream, name)) {
      used.files += entry.size;
      used.entries += 1;
      check();
      await writer.write(entry);
    }
    // The digest is compared at the stream's end.
    for await (const _ of plain);
  } finally {
    await plain.return(undefined);
  }
  const { links, hasRoot } = writer.finish();
  if (links.length > 0 || !hasRoot)
    throw new BoughError(`${name} is damaged: it is not the archive of a cache`);
}
