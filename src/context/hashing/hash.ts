import { availableParallelism } from "node:os";
import { type Clock, systemClock } from "../../clock.ts";
import { LinkFreeOpener } from "../../open-without-links.ts";
import { createPace } from "../../pace.ts";
import { startThread } from "../../thread.ts";
import type { FileEntry } from "../sources/entry.ts";
import {
  type ContentListener,
  createFileHasher,
  type FileToHash,
  type HashCache,
  isSettled,
} from "./hash-file.ts";

export interface HashOptions<Entry extends FileEntry = FileEntry> {
  signal?: AbortSignal;
  cache?: HashCache;
  /** The clock that decides which files are too new to be remembered. */
  clock?: Pick<Clock, "now">;
  /** Called with the progress now and then. */
  onProgress?: (done: { files: number; bytes: number }) => void;
  /** Called with each file's hash as soon as it is known, in any order. */
  onHash?: (entry: Entry, sha256: string) => void;
  /** Called for small files that had to be read. */
  onContent?: ContentListener | undefined;
  /**
   * Hashes a large file while its bytes are used for something else; returns `undefined` if it does not. `onBytes`: called with
   * the number of bytes read since the last call.
   */
  hashWhileSending?: (entry: Entry, onBytes: (bytes: number) => void) => Promise<string | undefined>;
}

/** The size from which files are hashed last, several at once. For smaller ones, a message to a thread takes too long. */
const largeBytes = 256 * 1024;
/** The size from which a single file may be hashed while it is sent. Several such files are hashed on threads. */
const minSendingBytes = 64 * 1024 * 1024;

/** Returns the SHA-256 of each file's content in lower-case hex, by its absolute path. */
export async function hashFiles(
  entries: Iterable<FileEntry>,
  options: HashOptions = {},
): Promise<ReadonlyMap<string, string>> {
  const hashes = new Map<string, string>();
  const byPath = new Map(Array.from(entries, (entry) => [entry.absolutePath, entry]));
  await hashEach(byPath.values(), {
    ...options,
    onHash(entry, sha256) {
      hashes.set(entry.absolutePath, sha256);
      options.onHash?.(entry, sha256);
    },
  });
  return hashes;
}

/**
 * Calls `onHash` with the SHA-256 of each file's content in lower-case hex. `areSettled`: true if every later change of these
 * files shows in their `stat`, see `isSettled`.
 *
 * @throws BoughError that names a file that can't be read, or no longer matches its entry: a hash never belongs to another state
 * of the file than the entry's size and mode
 */
export async function hashEach<Entry extends FileEntry>(
  entries: Iterable<Entry>,
  options: HashOptions<Entry>,
): Promise<{ areSettled: boolean }> {
  const { signal, cache, clock = systemClock } = options;
  const done = { files: 0, bytes: 0 };
  const report = () => options.onProgress?.({ ...done });
  const pace = createPace(signal, report);
  using opener = new LinkFreeOpener();
  const hashFile = createFileHasher(pace, (path) => opener.open(path), options.onContent);
  const large: Entry[] = [];
  let areSettled = true;
  const onBytes = (bytes: number) => {
    done.bytes += bytes;
  };
  const onManyBytes = (bytes: number) => {
    onBytes(bytes);
    report();
  };
  const add = (entry: Entry, hash: string, readAt: number) => {
    const { absolutePath, stat } = entry;
    if (!isSettled(stat, readAt)) areSettled = false;
    else cache?.set(absolutePath, stat, hash);
    done.files++;
    options.onHash?.(entry, hash);
  };
  for (const entry of entries) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    const known = cache?.get(entry.absolutePath, entry.stat);
    if (known !== undefined) {
      done.files++;
      done.bytes += entry.size;
      options.onHash?.(entry, known);
    } else if (entry.size >= largeBytes) {
      large.push(entry);
    } else {
      const readAt = clock.now();
      const hash = hashFile(entry, onBytes);
      add(entry, typeof hash === "string" ? hash : await hash, readAt);
    }
  }
  const largest = large.filter(({ size }) => size >= minSendingBytes);
  const [lone] = largest.length === 1 && options.hashWhileSending !== undefined ? largest : [];
  const rest = large.filter((entry) => entry !== lone);
  if (shouldUseThreads(rest)) {
    const readAt = clock.now();
    const onHash = (entry: Entry, hash: string) => add(entry, hash, readAt);
    await hashOnThreads(rest, { signal, onHash, onBytes: onManyBytes });
  } else {
    for (const entry of rest) {
      const readAt = clock.now();
      add(entry, await hashFile(entry, onBytes), readAt);
    }
  }
  if (lone !== undefined) {
    const readAt = clock.now();
    const hash = await options.hashWhileSending?.(lone, onManyBytes);
    add(lone, hash ?? (await hashFile(lone, onBytes)), readAt);
  }
  return { areSettled };
}

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
function shouldUseThreads(files: readonly FileToHash[]): boolean {
  return files.length > 1 && files.reduce((sum, { size }) => sum + size, 0) >= minBytesForThreads;
}

/** Hashes files on several processors, each thread one file at a time. Rejects with the first failure. */
async function hashOnThreads<Entry extends FileToHash>(
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
        const request = { absolutePath, contextPath, size, stat: { ...stat } };
        onHash(file, await thread.send(request, { onProgress: onBytes }));
      }
    });
    await Promise.race([Promise.all(work), stopped]);
  } finally {
    signal?.removeEventListener("abort", abort);
    for (const thread of threads) thread.close();
  }
}
