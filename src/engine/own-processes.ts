import type { OwnProcess } from "../programs/own-process.ts";
import { listen } from "./network/listen.ts";
import { findRoot, replaceRoot } from "./sandbox/root/namespace-root.ts";

/** The functions that run in a process of their own. Each returns the exit code. */
const parts: Record<OwnProcess, (words: readonly string[]) => number | Promise<number>> = {
  "find-root": findRoot,
  "replace-root": ([pid = ""]) => replaceRoot(pid),
  listen,
};

/** Runs the part that the words of `ownProcess` name. */
export async function runOwnProcess([name = "", ...words]: readonly string[]): Promise<number> {
  return Object.hasOwn(parts, name) ? await parts[name as OwnProcess](words) : 2;
}
