/** Sends a signal to a process, or to a process group if `pid` is negative. Does nothing if it has ended. */
export function sendSignal(pid: number, signal: number | NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
