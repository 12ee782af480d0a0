import { availableParallelism } from "node:os";
import { startThread } from "../../thread.ts";
import type { FileToHash } from "./hash-file.ts";

interface ThreadOptions<Entry> {
  signal: AbortSignal | undefined;
  onHash: (entry: Entry, hash: string) => void;
  /** Called with the number of bytes that were read since it was called last. */
  onBytes: (bytes: number) => void;
}

/** Fewer bytes take less time than threads take to start. */
const worthBytes = 128 * 1024 * 1024;
/** Four threads read as fast as most disks give. */
const maxThreads = 4;

/** One file is one thread's: there have to be several. */
export function shouldUseThreads(files: readonly FileToHash[]): boolean {
  return files.length > 1 && files.reduce((sum, { size }) => sum + size, 0) >= worthBytes;
}

/** Hashes files on all processors, one file a thread at a time. Rejects with the first failure. */
export async function hashOnThreads<Entry extends FileToHash>(
  files: readonly Entry[],
  { signal, onHash, onBytes }: ThreadOptions<Entry>,
): Promise<void> {
  // The largest first, so that no thread is left alone with it at the end.
  const waiting = [...files].sort((one, other) => one.size - other.size);
  const count = Math.min(availableParallelism(), maxThreads, waiting.length);
  const threads = Array.from({ length: count }, () =>
    startThread<FileToHash, string, number>("./context/hashing/hash-thread.ts"),
  );
  const { promise: stopped, reject: stop } = Promise.withResolvers<never>();
  stopped.catch(() => undefined);
  const abort = () => stop(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  try {
    signal?.throwIfAborted();
    const work = threads.map(async (thread) => {
      for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
        const { absolutePath, contextPath, size, stat } = file;
        const asked = { absolutePath, contextPath, size, stat: { ...stat } };
        onHash(file, await thread.ask(asked, { onNote: onBytes }));
      }
    });
    await Promise.race([Promise.all(work), stopped]);
  } finally {
    signal?.removeEventListener("abort", abort);
    for (const thread of threads) thread.close();
  }
}
