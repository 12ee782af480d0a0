/** Handles a signal by ending only a part of the work. Resolves with false if the whole command is to end. */
export type Interrupt = () => Promise<boolean>;

/** The time within which two signals may come from one key press. */
const echoMilliseconds = 200;

/**
 * Returns the handler of Ctrl-C, or of SIGTERM. It calls the latest of `handlers`. It calls `fallback` if there is none, if that
 * handler resolves with false, or if the signal comes again before the handler has ended.
 */
export function createInterruptKey(
  handlers: ReadonlySet<Interrupt>,
  fallback: () => void,
  now: () => number = Date.now,
): () => void {
  let pressedAt: number | undefined;
  return () => {
    const latest = [...handlers].at(-1);
    if (latest === undefined) return fallback();
    if (pressedAt !== undefined) {
      if (now() - pressedAt > echoMilliseconds) fallback();
      return;
    }
    pressedAt = now();
    void latest()
      .catch(() => false)
      .then((isDone) => {
        pressedAt = undefined;
        if (!isDone) fallback();
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
