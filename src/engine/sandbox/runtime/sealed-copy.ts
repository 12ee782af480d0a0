import { closeSync, fstatSync, readFileSync, writeFileSync } from "node:fs";
import { libc } from "../../system/libc.ts";

/** The values of linux/memfd.h and linux/fcntl.h. */
const [memfdCloseOnExec, allowSealing, executable] = [0x1, 0x2, 0x10];
const [addSeals, allSeals] = [1033, 0xf];

/**
 * A program in memory that nobody can change any more. crun starts itself anew from such a copy for each container, so that no
 * container can reach its file; started from one it need not, which is half of what its start takes. Returns a descriptor;
 * `undefined` where the system has no such files, or lets none be run.
 */
export function openSealedCopy(program: string): number | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openMemory("crun");
    if (descriptor === undefined) return undefined;
    writeFileSync(descriptor, readFileSync(program));
    const mayBeRun = (fstatSync(descriptor).mode & 0o111) !== 0;
    if (mayBeRun && libc().fcntl(descriptor, addSeals, allSeals) === 0) return descriptor;
  } catch {
    // The file itself is run.
  }
  if (descriptor !== undefined) closeSync(descriptor);
  return undefined;
}

/** Linux before 6.3 has no word for a file that may be run, since any may; after that one without the word may not, if so set. */
function openMemory(name: string): number | undefined {
  const open = (flags: number) => libc().memfd_create(Buffer.from(`${name}\0`), flags);
  const flags = memfdCloseOnExec | allowSealing;
  const descriptor = open(flags | executable);
  const found = descriptor < 0 ? open(flags) : descriptor;
  return found < 0 ? undefined : found;
}
