/** Numbers in [0, 1), which are the same for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * Returns a function like `seededRandom`'s whose numbers lie evenly in [0, 1), however few there are: each is a golden section
 * after the previous one. A few kills at such instants hit each part of a build.
 */
export function spreadRandom(seed: number): () => number {
  let last = seededRandom(seed)();
  return () => {
    last = (last + (Math.sqrt(5) - 1) / 2) % 1;
    return last;
  };
}

/** The number of runs of a property: the usual one, multiplied by `FAST_CHECK_TIMES`. */
export function runs(usual: number): number {
  return usual * Number(process.env.FAST_CHECK_TIMES ?? 1);
}
