/** A number of slots for work at the same time. When all are taken, further work waits in a queue. */
export interface Slots {
  /** Waits for a free slot. Resolves to a function that releases it. */
  take(): Promise<() => void>;
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
  const take = async () => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    return give;
  };
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
