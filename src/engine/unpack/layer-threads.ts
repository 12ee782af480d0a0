import { availableParallelism } from "node:os";
import { BoughError } from "../../errors.ts";
import { threadUrl } from "../../thread-url.ts";
import { endTotals, makeTotals, openTotals } from "./totals.ts";
import { type LayerJob, type UnpackedLayer, unpackLayer } from "./unpack-layer.ts";

/** What a thread is sent. */
export interface ThreadJob {
  job: LayerJob;
  totals: SharedArrayBuffer;
}

/** What it says of it; `code` is that of a failed system call. */
export type ThreadAnswer =
  | { layer: UnpackedLayer }
  | { failure: { message: string; hint: string | undefined; code: string | undefined } };

/** Unpacks the layers of one import, several at once. */
export interface LayerThreads {
  unpack(job: LayerJob): Promise<UnpackedLayer>;
  /** Ends what is under way, and waits for its end: nothing is written after it. */
  close(): Promise<void>;
}

/** Below it, a thread takes longer to start than it saves. */
const worthBytes = 4 * 1024 * 1024;
/** More write faster than most disks take. */
const maxThreads = 4;
/** Small layers that are read at once. */
const maxSmall = 4;

export function isWorthThread(bytes: number): boolean {
  return bytes >= worthBytes;
}

export function openLayerThreads(signal: AbortSignal): LayerThreads {
  const memory = makeTotals();
  const totals = openTotals(memory);
  const idle: Worker[] = [];
  const threads: Worker[] = [];
  const max = Math.min(availableParallelism(), maxThreads);
  const waiting: ((thread: Worker) => void)[] = [];
  const running = new Set<Promise<unknown>>();
  const end = () => endTotals(memory);
  signal.addEventListener("abort", end, { once: true });

  function takeThread(): Worker | Promise<Worker> {
    const thread = idle.pop();
    if (thread !== undefined) return thread;
    if (threads.length >= max) return new Promise((resolve) => waiting.push(resolve));
    const made = new Worker(threadUrl("./engine/unpack/layer-thread.ts"));
    threads.push(made);
    return made;
  }

  let small = 0;
  const smallWaiting: (() => void)[] = [];

  async function unpackHere(job: LayerJob): Promise<UnpackedLayer> {
    if (small < maxSmall) small += 1;
    else await new Promise<void>((resolve) => smallWaiting.push(resolve));
    try {
      return await unpackLayer(job, totals);
    } finally {
      const next = smallWaiting.shift();
      if (next === undefined) small -= 1;
      else next();
    }
  }

  async function unpackOnThread(job: LayerJob): Promise<UnpackedLayer> {
    const thread = await takeThread();
    try {
      return await askThread(thread, { job, totals: memory });
    } finally {
      const next = waiting.shift();
      if (next === undefined) idle.push(thread);
      else next(thread);
    }
  }

  return {
    async unpack(job) {
      signal.throwIfAborted();
      const work = isWorthThread(job.file.length) ? unpackOnThread(job) : unpackHere(job);
      const settled = work.catch(() => undefined);
      running.add(settled);
      try {
        return await work;
      } catch (error) {
        signal.throwIfAborted();
        throw error;
      } finally {
        running.delete(settled);
      }
    },
    async close() {
      signal.removeEventListener("abort", end);
      end();
      await Promise.all(running);
      for (const thread of threads) thread.terminate();
    },
  };
}

function askThread(thread: Worker, request: ThreadJob): Promise<UnpackedLayer> {
  return new Promise((resolve, reject) => {
    thread.onerror = (event) => reject(new Error(event.message));
    thread.onmessage = ({ data }: MessageEvent<ThreadAnswer>) => {
      if ("layer" in data) resolve(data.layer);
      else {
        const { message, hint, code } = data.failure;
        const error = new BoughError(message, hint === undefined ? {} : { hint });
        reject(code === undefined ? error : Object.assign(error, { code }));
      }
    };
    thread.postMessage(request);
  });
}
