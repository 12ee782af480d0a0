import { existsSync } from "node:fs";
import { streamOf } from "../../streams.ts";
import { RequestError } from "../http/responses.ts";
import { cacheDirectory, releaseCaches, takeCacheForReading } from "../records/caches.ts";
import type { EngineState } from "../state.ts";

/** Opens the files of a cache, in the format of a layer. Keeps commands from it until the stream has ended or is cancelled. */
export async function openCacheArchive(state: EngineState, key: string): Promise<ReadableStream<Uint8Array>> {
  const { database, layout, clock, inUserNamespace } = state;
  const { streamLayer } = await import("./layer-archive.ts");
  const operation = crypto.randomUUID();
  const taken = takeCacheForReading({ database, layout }, { key, operation, now: clock.now() });
  if (taken === "busy") throw new RequestError(409, "another command is using the cache");
  if (taken === "absent") throw new RequestError(404, `there is no cache ${key}`);
  const ended = new AbortController();
  const release = () => {
    ended.abort();
    // When the engine is closed, its uses of caches have ended anyway.
    if (!state.closing.aborted) releaseCaches(database, operation, clock.now());
  };
  const directory = cacheDirectory(layout, taken.name);
  if (!existsSync(directory)) {
    release();
    throw new RequestError(404, `there is no cache ${key}`);
  }
  const signal = AbortSignal.any([ended.signal, state.closing]);
  const chunks = streamLayer(directory, { inUserNamespace, clampTo: undefined, signal });
  return streamOf(chunks, release);
}
