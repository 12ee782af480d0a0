import { makeLayout } from "../../src/engine/layout.ts";
import { findCrun } from "../../src/engine/sandbox/runtime/choice.ts";
import { temporaryDirectory } from "./bough.ts";

/**
 * The runtimes that can run commands on this machine: runc, and crun as well where there are control groups that bough uses it with.
 * What `BOUGH_RUNTIME` takes.
 */
export function usableRuntimes({
  inUserNamespace = false,
  path = process.env.PATH,
} = {}): ("runc" | "crun")[] {
  const found = findCrun(makeLayout(temporaryDirectory()), { PATH: path }, inUserNamespace);
  return "problem" in found ? ["runc"] : ["runc", "crun"];
}
