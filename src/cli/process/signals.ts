/**
 * The signals by which somebody asks for an end: Ctrl-C, kill(1), a terminal that is closed. `ignoresHangup`: the last one is
 * not to end the work, as under nohup(1). Windows has no kill(1); there it is Ctrl-C, Ctrl-Break, and a window that is closed.
 */
export function endingSignals(platform: NodeJS.Platform, ignoresHangup: boolean): NodeJS.Signals[] {
  if (platform === "win32") return ["SIGINT", "SIGBREAK", "SIGHUP"];
  return ignoresHangup ? ["SIGINT", "SIGTERM"] : ["SIGINT", "SIGTERM", "SIGHUP"];
}
