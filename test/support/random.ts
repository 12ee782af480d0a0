/** Numbers in [0, 1) that can be had again: the same for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** How often a property is tried: by hand `FAST_CHECK_TIMES` as often as usual. */
export function runs(usual: number): number {
  return usual * Number(process.env.FAST_CHECK_TIMES ?? 1);
}
