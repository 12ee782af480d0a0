/** A number of slots for work at the same time. When all are taken, further work waits in a queue. */
export interface Slots {
  /** Waits for a free slot. Resolves to a function that releases it. Rejects with the signal's reason if it is aborted first. */
  take(signal?: AbortSignal): Promise<() => void>;
  /** Waits for other work while holding a slot, which that work may use meanwhile. */
  lend<Result>(work: () => Promise<Result>): Promise<Result>;
}

export function createSlots(count: number): Slots {
  let free = count;
  const waiting: (() => void)[] = [];
  const give = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  const take = async (signal?: AbortSignal) => {
    signal?.throwIfAborted();
    if (free > 0) free -= 1;
    else await join(signal);
    return give;
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
    take,
    async lend(work) {
      give();
      try {
        return await work();
      } finally {
        await take();
      }
    },
  };
}
