/**
 * Returns the signals that ask the program to end: Ctrl-C, kill(1), a closed terminal. With `ignoresHangup`, a closed terminal
 * does not end it, as under nohup(1). Windows has no kill(1); there the signals are Ctrl-C, Ctrl-Break and a closed window.
 */
export function endingSignals(platform: NodeJS.Platform, ignoresHangup: boolean): NodeJS.Signals[] {
  if (platform === "win32") return ["SIGINT", "SIGBREAK", "SIGHUP"];
  return ignoresHangup ? ["SIGINT", "SIGTERM"] : ["SIGINT", "SIGTERM", "SIGHUP"];
}
