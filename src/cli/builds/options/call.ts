import type { Values } from "../../command-line/arguments.ts";
import { oneOf } from "../../command-line/option-values.ts";

/** The values of `--call`, which is docker buildx's. */
export const calls = ["build", "check", "outline", "targets"] as const;

/** Returns what is asked for. `--check` is `--call=check`. A format behind a comma is `-f`'s in bough. */
export function readCall(values: Values): (typeof calls)[number] {
  if (values.flag("check")) return "check";
  const given = values.text("call") ?? "build";
  return oneOf(given.replace(/,format=json$/, "").replace(/^lint$/, "check"), calls, "--call");
}
