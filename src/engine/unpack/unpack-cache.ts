import { mkdirSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { decompress, detectLayerCompression, peek } from "../../image/compression.ts";
import { readLayerTar } from "../../image/tar-reader.ts";
import type { CacheContents } from "../../service/wire/mount.ts";
import { tap } from "../../streams.ts";
import { openSource } from "../import/open-source.ts";
import { requireAcceptedRepository } from "../import/signature-policy.ts";
import { createBudget } from "../import-limits.ts";
import type { EngineState } from "../state.ts";
import { LayerWriter } from "./layer-writer.ts";

/**
 * Fetches the archive of a cache and unpacks it into a new directory, to which nobody else has a path yet. Rejects if the archive
 * has another digest: what was unpacked must not be used then.
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
  using opened = await openSource(state, source);
  const { bytes, beginning } = await peek(await opened.store.openBlob({ digest, size }, signal));
  const plain = tap(decompress(bytes, detectLayerCompression(beginning, name), name), (chunk) => {
    used.content += chunk.byteLength;
    check();
  });
  mkdirSync(directory);
  const writer = new LayerWriter(directory, inUserNamespace);
  try {
    // Without `return`, so that the reader does not close the stream at the archive's end, which comes before the stream's.
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
