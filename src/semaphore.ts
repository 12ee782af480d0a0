/** Limits how much work runs at the same time. When all slots are taken, further work waits in a queue. */
export interface Semaphore {
  /** Waits for a free slot. Resolves to a function that releases it. Rejects with the signal's reason if it is aborted first. */
  acquire(signal?: AbortSignal): Promise<() => void>;
  /** Gives up a slot while `work` runs, which may need it, and acquires one again afterwards. */
  releaseDuring<Result>(work: () => Promise<Result>): Promise<Result>;
}

export function createSemaphore(count: number): Semaphore {
  let free = count;
  const waiting: (() => void)[] = [];
  const release = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  const acquire = async (signal?: AbortSignal) => {
    signal?.throwIfAborted();
    if (free > 0) free -= 1;
    else await join(signal);
    return release;
  };
  const join = (signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const leave = () => {
        waiting.splice(waiting.indexOf(start), 1);
        reject(signal?.reason);
      };
      const start = () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      waiting.push(start);
      signal?.addEventListener("abort", leave, { once: true });
    });
  return {
    acquire,
    async releaseDuring(work) {
      release();
      try {
        return await work();
      } finally {
        await acquire();
      }
    },
  };
}
