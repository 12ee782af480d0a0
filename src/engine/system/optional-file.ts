import { readFileSync } from "node:fs";

/** Returns a file's text; "" if it can't be read. */
export function readOptional(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
