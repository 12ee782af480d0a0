import { closeSync, fstatSync, readFileSync, writeFileSync } from "node:fs";
import { libc } from "../../../programs/libc.ts";

/** The values of linux/memfd.h and linux/fcntl.h. */
const [memfdCloseOnExec, allowSealing, executable] = [0x1, 0x2, 0x10];
const [addSeals, allSeals] = [1033, 0xf];

/**
 * Copies a program to a sealed file in memory, which can't be changed. For each container, crun restarts itself from such a copy,
 * so that no container can reach its file. Started from a copy, it skips that, which is half of its start. Returns a descriptor;
 * `undefined` if the system has no such files, or does not allow running them.
 */
export function openSealedCopy(program: string): number | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openMemory();
    if (descriptor === undefined) return undefined;
    writeFileSync(descriptor, readFileSync(program));
    const mayBeRun = (fstatSync(descriptor).mode & 0o111) !== 0;
    if (mayBeRun && libc().fcntl(descriptor, addSeals, allSeals) === 0) return descriptor;
  } catch {
    // The program's file is run instead.
  }
  if (descriptor !== undefined) closeSync(descriptor);
  return undefined;
}

/** Before Linux 6.3 all files in memory are executable, and the flag is unknown. Later kernels may require it. */
function openMemory(): number | undefined {
  const open = (flags: number) => libc().memfd_create(Buffer.from("crun\0"), flags);
  const flags = memfdCloseOnExec | allowSealing;
  const descriptor = open(flags | executable);
  const found = descriptor < 0 ? open(flags) : descriptor;
  return found < 0 ? undefined : found;
}
