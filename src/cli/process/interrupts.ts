/** Ends part of the work on a signal, in place of the whole command line. Resolves with false if all is to end now. */
export type Interrupt = () => Promise<boolean>;

/** One key press may arrive as two signals within this time. */
const echoMilliseconds = 200;

/**
 * Returns the handler of Ctrl-C, or of SIGTERM. It calls the latest of `own`. It calls `otherwise` if there is none, if that
 * resolves with false, or if the signal comes again before that is done.
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

/**
 * Returns the signals that ask the program to end: Ctrl-C, kill(1), a closed terminal. With `ignoresHangup`, a closed terminal
 * does not end it, as under nohup(1). Windows has no kill(1); there the signals are Ctrl-C, Ctrl-Break and a closed window.
 */
export function endingSignals(platform: NodeJS.Platform, ignoresHangup: boolean): NodeJS.Signals[] {
  if (platform === "win32") return ["SIGINT", "SIGBREAK", "SIGHUP"];
  return ignoresHangup ? ["SIGINT", "SIGTERM"] : ["SIGINT", "SIGTERM", "SIGHUP"];
}
