/** What Ctrl-C ends instead of the whole command line. Resolves with false where that can't be done. */
export type Interrupt = () => Promise<boolean>;

/** A key that is pressed once may be heard twice. */
const echoMilliseconds = 200;

/**
 * Returns what Ctrl-C does: the latest of `own`, or `otherwise` where there is none, where it fails, and where the key is pressed
 * again before it is done.
 */
export function createInterruptKey(
  own: ReadonlySet<Interrupt>,
  otherwise: () => void,
  now: () => number = Date.now,
): () => void {
  let pressedAt: number | undefined;
  return () => {
    const latest = [...own].at(-1);
    if (latest === undefined) return otherwise();
    if (pressedAt !== undefined) {
      if (now() - pressedAt > echoMilliseconds) otherwise();
      return;
    }
    pressedAt = now();
    void latest()
      .catch(() => false)
      .then((isDone) => {
        pressedAt = undefined;
        if (!isDone) otherwise();
      });
  };
}
