import { availableParallelism } from "node:os";
import { createSemaphore } from "../../semaphore.ts";
import { startThread, type Thread } from "../../thread.ts";
import { NoRoomError } from "../import-limits.ts";
import { endTotals, makeTotals, openTotals } from "./totals.ts";
import { type LayerJob, type UnpackedLayer, unpackLayer } from "./unpack-layer.ts";

/** A request to a thread. */
export interface ThreadJob {
  job: LayerJob;
  totals: SharedArrayBuffer;
}

/** The response of a thread. `noRoom`: the message of the NoRoomError that has ended the work. */
export type ThreadResult = { layer: UnpackedLayer } | { noRoom: string };

/** Unpacks the layers of one import, several at once. */
export interface LayerThreads {
  unpack(job: LayerJob): Promise<UnpackedLayer>;
  /** Stops running work and waits for its end: nothing is written afterwards. */
  close(): Promise<void>;
}

/** A smaller layer takes less time than starting a thread. */
const minBytesForThread = 4 * 1024 * 1024;
/** Four threads write as fast as most disks can. */
const maxThreads = 4;
/** The maximum number of small layers that are unpacked at once. */
const maxSmall = 4;

export function needsThread(bytes: number): boolean {
  return bytes >= minBytesForThread;
}

export function openLayerThreads(signal: AbortSignal): LayerThreads {
  const memory = makeTotals();
  const totals = openTotals(memory);
  const threads: Thread<ThreadJob, ThreadResult>[] = [];
  const slots = {
    large: createSemaphore(Math.min(availableParallelism(), maxThreads)),
    small: createSemaphore(maxSmall),
  };
  const running = new Set<Promise<unknown>>();
  const end = () => endTotals(memory);
  signal.addEventListener("abort", end, { once: true });

  function takeThread(): Thread<ThreadJob, ThreadResult> {
    const idle = threads.find((thread) => thread.waiting() === 0);
    if (idle !== undefined) return idle;
    const made = startThread<ThreadJob, ThreadResult>("./engine/unpack/layer-thread.ts");
    threads.push(made);
    return made;
  }

  async function unpackInTurn(job: LayerJob): Promise<UnpackedLayer> {
    const isLarge = needsThread(job.file.length);
    const release = await slots[isLarge ? "large" : "small"].acquire();
    try {
      if (!isLarge) return await unpackLayer(job, totals);
      const result = await takeThread().send({ job, totals: memory });
      if ("noRoom" in result) throw new NoRoomError(result.noRoom);
      return result.layer;
    } finally {
      release();
    }
  }

  return {
    async unpack(job) {
      signal.throwIfAborted();
      const work = unpackInTurn(job);
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
      for (const thread of threads) thread.close();
    },
  };
}
