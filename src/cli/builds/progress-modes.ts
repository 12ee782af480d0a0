import type { Values } from "../command-line/arguments.ts";
import { oneOf } from "../command-line/option-values.ts";

/** The values of `--progress`. They are apart from the code that implements them, so that help need not load it. */
export const progressModes = ["auto", "tty", "compact", "plain", "json", "rawjson", "quiet", "none"] as const;

type Mode = Exclude<(typeof progressModes)[number], "rawjson" | "quiet" | "none">;

/** Reads `--progress`. Throws a BoughError of kind `usage` if it is not a mode. */
export function readProgressMode(values: Values): Mode {
  const mode = oneOf(values.text("progress") ?? "auto", progressModes, "--progress");
  // docker buildx's names. The global options quiet and log-level are read accordingly.
  if (mode === "rawjson") return "json";
  return mode === "quiet" || mode === "none" ? "plain" : mode;
}
