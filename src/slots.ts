/** A number of places, one for each step at work: who comes when all are taken waits in line. */
interface Slots {
  /** Resolves to what gives the place back. */
  take(): Promise<() => void>;
}

export function createSlots(count: number): Slots {
  let free = count;
  const waiting: (() => void)[] = [];
  const give = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async take() {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      return give;
    },
  };
}
