import { readFileSync } from "node:fs";

let known: string | undefined;

/** Returns the kernel's boot ID; `undefined` on a system without /proc. */
export function bootId(): string | undefined {
  try {
    known ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // The system has no boot ID.
  }
  return known;
}
