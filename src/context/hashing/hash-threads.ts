import { availableParallelism } from "node:os";
import { BoughError } from "../../errors.ts";
import { threadUrl } from "../../thread-url.ts";
import type { FileToHash } from "./hash-file.ts";

/** What a thread says of the file that it was given. */
export type ThreadMessage =
  | { kind: "bytes"; bytes: number }
  | { kind: "hash"; hash: string }
  | { kind: "failure"; message: string; hint: string | undefined };

interface ThreadOptions<Entry> {
  signal: AbortSignal | undefined;
  onHash: (entry: Entry, hash: string) => void;
  /** Called with the number of bytes that were read since it was called last. */
  onBytes: (bytes: number) => void;
}

/** Below it, threads take longer to start than they save. */
const worthBytes = 128 * 1024 * 1024;
/** More read faster than most disks give. */
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
  const threads = Array.from(
    { length: count },
    () => new Worker(threadUrl("./context/hashing/hash-thread.ts")),
  );
  const { promise: stopped, reject: stop } = Promise.withResolvers<never>();
  stopped.catch(() => undefined);
  const abort = () => stop(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  try {
    signal?.throwIfAborted();
    const work = threads.map(async (thread) => {
      for (let file = waiting.pop(); file !== undefined; file = waiting.pop())
        onHash(file, await hashOn(thread, file, onBytes));
    });
    await Promise.race([Promise.all(work), stopped]);
  } finally {
    signal?.removeEventListener("abort", abort);
    for (const thread of threads) thread.terminate();
  }
}

function hashOn(
  thread: Worker,
  { absolutePath, contextPath, size, stat }: FileToHash,
  onBytes: (bytes: number) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    thread.onerror = (event) => reject(new Error(event.message));
    thread.onmessage = ({ data }: MessageEvent<ThreadMessage>) => {
      switch (data.kind) {
        case "bytes":
          return onBytes(data.bytes);
        case "hash":
          return resolve(data.hash);
        case "failure":
          return reject(new BoughError(data.message, data.hint === undefined ? {} : { hint: data.hint }));
      }
    };
    const file: FileToHash = { absolutePath, contextPath, size, stat: { ...stat } };
    thread.postMessage(file);
  });
}
