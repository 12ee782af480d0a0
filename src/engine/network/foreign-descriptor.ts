/** Open files of other processes. */
import { closeSync } from "node:fs";
import { numericCalls } from "../../programs/libc.ts";

/** System calls with the same number on all architectures. */
const [openProcess, takeDescriptor] = [434, 438];

/** Duplicates a descriptor of another process. Returns `undefined` if the kernel does not allow it (Linux before 5.6). */
export function openForeign(pid: number, descriptor: number): number | undefined {
  const { syscall } = numericCalls();
  const processDescriptor = Number(syscall(openProcess, pid, 0, 0));
  if (processDescriptor < 0) return undefined;
  const own = Number(syscall(takeDescriptor, processDescriptor, descriptor, 0));
  closeSync(processDescriptor);
  return own < 0 ? undefined : own;
}
