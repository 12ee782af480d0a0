import { closeSync, lstatSync, openSync, writeSync } from "node:fs";
import { type Compression, type Compressor, createCompressor } from "../../image/compression.ts";
import { type LayerBlob, writeLayerBlob } from "../../image/layer-header.ts";
import type { PackJob } from "../../image/layer-writer.ts";
import { tap } from "../../streams.ts";
import { startThread, type Thread } from "../../thread.ts";
import { streamSplit } from "../records/tar-split.ts";
import { joinPath, listDirectory, type Path } from "../system/path.ts";
import { type LayerArchiveOptions, streamLayer } from "./layer-archive.ts";

/** A layer whose archive is made of its directory. */
export interface PackableLayer {
  directory: string;
  /** Set if the archive is the one that was imported: the path of its split, and its own size. */
  split?: { path: string; archiveBytes: number } | undefined;
}

/** A layer to pack, and the file for it. Plain data, since it is sent to a thread. */
interface PackTask extends LayerArchiveOptions, PackableLayer {
  compression: Compression;
  path: string;
  position: number;
  /** An integer, which is 1 when the work is to stop. */
  stop: SharedArrayBuffer;
}

/** Packs layers, one at a time: large ones in a thread, which leaves this one to commands and transfers. */
export interface Packer {
  pack(layer: PackableLayer & { inUserNamespace: boolean }, job: PackJob): Promise<LayerBlob>;
}

/** Opens a packer, which ends with `closing`. */
export function openPacker(closing: AbortSignal): Packer {
  const small = createPacking();
  let thread: Thread<PackTask, LayerBlob, number> | undefined;
  const close = () => {
    thread?.close();
    small.close();
  };
  closing.addEventListener("abort", close, { once: true });
  return {
    async pack(layer, { signal, onRead, ...job }) {
      signal.throwIfAborted();
      closing.throwIfAborted();
      const stop = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
      const end = () => void Atomics.store(new Int32Array(stop), 0, 1);
      signal.addEventListener("abort", end, { once: true });
      try {
        const task = { ...layer, ...job, stop };
        if (isSmall(layer)) return await small.pack(task, onRead);
        if (thread?.isBroken() !== false) thread = startThread("./engine/export/pack-thread.ts");
        return await thread.send(task, { onProgress: onRead });
      } catch (error) {
        signal.throwIfAborted();
        closing.throwIfAborted();
        throw error;
      } finally {
        signal.removeEventListener("abort", end);
      }
    },
  };
}

/** The maximum size of a layer that is packed before a thread would have started. */
const maxSmall = { entries: 200, bytes: 2 * 1024 * 1024 };

function isSmall({ directory, split }: PackableLayer): boolean {
  if (split !== undefined) return split.archiveBytes <= maxSmall.bytes;
  let [entries, bytes] = [0, 0];
  const waiting: Path[] = [directory];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    for (const { name, type } of listDirectory(place)) {
      const path = joinPath(place, name);
      entries += 1;
      if (type === "directory") waiting.push(path);
      else bytes += lstatSync(path).size;
      if (entries > maxSmall.entries || bytes > maxSmall.bytes) return false;
    }
  }
  return true;
}

/** The number of bytes between two reports of progress. */
const reportedBytes = 4 * 1024 * 1024;

/** Returns `pack`, which packs a layer into a file and hashes it before and after compression, and `close`, which ends its threads. */
export function createPacking() {
  const compressors = new Map<Compression, Compressor>();
  const pack = async (
    { directory, split, compression, path, position, stop, ...options }: PackTask,
    onRead: (bytes: number) => void,
  ): Promise<LayerBlob> => {
    const compressor = compressors.get(compression) ?? createCompressor(compression);
    compressors.set(compression, compressor);
    const stopped = new Int32Array(stop);
    const file = openSync(path, "r+");
    let [at, read, next] = [position, 0, 0];
    try {
      const chunks =
        split === undefined
          ? streamLayer(directory, options)
          : streamSplit(split.path, directory, options.signal);
      const archive = tap(chunks, (chunk) => {
        if (Atomics.load(stopped, 0) === 1) throw new Error("packing was stopped");
        read += chunk.byteLength;
        if (read < next) return;
        next = read + reportedBytes;
        onRead(read);
      });
      return await writeLayerBlob(archive, compressor, (bytes) => {
        for (let done = 0; done < bytes.byteLength; ) {
          const count = writeSync(file, bytes, done, bytes.byteLength - done, at);
          done += count;
          at += count;
        }
      });
    } finally {
      closeSync(file);
    }
  };
  const close = () => {
    for (const compressor of compressors.values()) compressor[Symbol.dispose]();
    compressors.clear();
  };
  return { pack, close };
}
