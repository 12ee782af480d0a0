import { makeLayout } from "../../src/engine/layout.ts";
import { findCrun } from "../../src/engine/sandbox/runtime/choice.ts";
import { temporaryDirectory } from "./bough.ts";

/**
 * The values of `BOUGH_RUNTIME` that work on this machine: runc, and crun if bough can use it with this machine's control groups.
 */
export function usableRuntimes({
  inUserNamespace = false,
  path = process.env.PATH,
} = {}): ("runc" | "crun")[] {
  const found = findCrun(makeLayout(temporaryDirectory()), { PATH: path }, inUserNamespace);
  return "problem" in found ? ["runc"] : ["runc", "crun"];
}
