import { BoughError } from "../../../errors.ts";
import type { Values } from "../../command-line/arguments.ts";

/** Reads `--no-cache-filter STAGE[,STAGE...]`. As in buildx, it can't be used with `--no-cache`. */
export function readUncachedStages(values: Values): string[] {
  const names = values.list("no-cache-filter").flatMap((text) => text.split(","));
  if (names.includes(""))
    throw new BoughError("--no-cache-filter takes the names of stages, separated by commas: one is empty", {
      kind: "usage",
      hint: "--no-cache builds all stages again.",
    });
  if (names.length > 0 && values.flag("no-cache"))
    throw new BoughError("--no-cache and --no-cache-filter cannot be used together", {
      kind: "usage",
      hint: "--no-cache builds all stages again.",
    });
  return [...new Set(names)];
}
