import type { Values } from "../command-line/arguments.ts";
import { oneOf } from "../command-line/option-values.ts";

/** The values of `--progress`. They are apart from the code that implements them, so that help need not load it. */
export const progressModes = ["auto", "tty", "compact", "plain", "json"] as const;

/** Reads `--progress`. Throws a BoughError of kind `usage` if it is not a mode. */
export function readProgressMode(values: Values): (typeof progressModes)[number] {
  return oneOf(values.text("progress") ?? "auto", progressModes, "--progress");
}
