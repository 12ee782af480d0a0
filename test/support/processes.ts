import { readdirSync, readFileSync } from "node:fs";

/** The command lines of all processes of the machine, arguments separated by spaces, as anybody on it can see them. */
export function commandLines(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      } catch {
        return "";
      }
    })
    .filter((line) => line !== "");
}
