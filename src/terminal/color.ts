/**
 * True if a stream gets colours. `FORCE_COLOR` decides if it is set, then `NO_COLOR` (https://no-color.org) and `CI`, whose logs
 * are files. Otherwise a terminal gets colours, unless it is a dumb one.
 */
export function wantsColor(
  environment: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean {
  const { FORCE_COLOR, NO_COLOR, CI, TERM } = environment;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== "") return !/^(0|false)$/i.test(FORCE_COLOR);
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  if (isCi(CI) || TERM === "dumb") return false;
  return isTerminal;
}

/** True if `CI` is set, as in continuous integration: the run is not interactive. */
export function isCi(value: string | undefined): boolean {
  return value !== undefined && !/^(|0|false)$/i.test(value);
}

const red = "31";
const yellow = "33";
const blue = "34";
const dim = "2";
const bold = "1";

/** Colours the `[LEVEL]` at the beginning of a log line. */
export function paintLevel(text: string): string {
  return text.replace(/^\[(ERROR|WARN|INFO|DEBUG)\]/, (prefix, level) =>
    paint(level === "ERROR" ? red : level === "WARN" ? yellow : dim, prefix),
  );
}

export function paintHeading(text: string): string {
  return paint(bold, text);
}

export function paintFinished(text: string): string {
  return paint(blue, text);
}

export function paintFailed(text: string): string {
  return paint(red, text);
}

export function paintDim(text: string): string {
  return paint(dim, text);
}

function paint(code: string, text: string): string {
  return `\u001b[${code}m${text}\u001b[0m`;
}
