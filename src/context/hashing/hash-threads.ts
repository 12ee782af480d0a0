import { availableParallelism } from "node:os";
import { startThread } from "../../thread.ts";
import type { FileToHash } from "./hash-file.ts";

interface ThreadOptions<Entry> {
  signal: AbortSignal | undefined;
  onHash: (entry: Entry, hash: string) => void;
  /** Called with the number of bytes read since the last call. */
  onBytes: (bytes: number) => void;
}

/** The minimum number of bytes: for fewer, starting threads takes longer than hashing. */
const minBytesForThreads = 128 * 1024 * 1024;
/** Four threads hash as fast as most disks read. */
const maxThreads = 4;

/** Returns true if threads are faster. There have to be several files, as each is hashed by one thread. */
export function shouldUseThreads(files: readonly FileToHash[]): boolean {
  return files.length > 1 && files.reduce((sum, { size }) => sum + size, 0) >= minBytesForThreads;
}

/** Hashes files on several processors, each thread one file at a time. Rejects with the first failure. */
export async function hashOnThreads<Entry extends FileToHash>(
  files: readonly Entry[],
  { signal, onHash, onBytes }: ThreadOptions<Entry>,
): Promise<void> {
  // The largest is taken first, so that it does not keep one thread busy alone at the end.
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
