/** Returns a function that calls `load` the first time, and returns its result from then on. */
export function once<Result extends object>(load: () => Result): () => Result {
  let loaded: Result | undefined;
  return () => {
    loaded ??= load();
    return loaded;
  };
}
