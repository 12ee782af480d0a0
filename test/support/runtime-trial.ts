/**
 * The result of crun's trial, which an engine remembers in its directory. It is the same for all engines of a user of this
 * machine, and a trial takes as long as several RUNs, so that tests pass the result of a process's first one on to new engines.
 * An engine makes a trial in spite of that if the result is for another program, kernel or set of control groups.
 */
import { lstatSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

let remembered: string | undefined;

/** Gives an engine the result of an earlier trial, if there is one and the engine has none. */
export function passTrialTo(engine: string): void {
  if (remembered === undefined || !isOwnDirectory(engine)) return;
  try {
    writeFileSync(join(engine, "runtime.json"), remembered, { mode: 0o600, flag: "wx" });
  } catch {
    // The engine has one, or its disk is full or read-only.
  }
}

/** Remembers the result of an engine's trial, if it is the first one that has succeeded. */
export function keepTrialOf(engine: string): void {
  if (remembered !== undefined || !isOwnDirectory(engine)) return;
  try {
    const result = readFileSync(join(engine, "runtime.json"), "utf8");
    if (result.includes('"filter"')) remembered = result;
  } catch {
    // The engine has made none.
  }
}

/** False for a link, and for a directory of another user, which tests put in an engine's place. */
function isOwnDirectory(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}
