import { closeSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { numericCalls } from "../../programs/libc.ts";

/** System calls with the same number on all architectures, and `TUNSETPERSIST` of linux/if_tun.h. */
const [openProcess, takeDescriptor, setPersistent] = [434, 438, 0x400454cb];

/**
 * Makes a process's network devices persistent, so that they end with its network namespace instead of the process. A device that
 * ends with its process delays the process's end by some 15 ms, in which the kernel makes sure that the device is unused. If the
 * kernel does not allow the change, the delay remains.
 */
export function leaveDevices(pid: number): void {
  try {
    for (const descriptor of tunDescriptors(pid)) makePersistent(pid, descriptor);
  } catch {
    // The process has ended, or the call is missing: Linux before 5.6.
  }
}

/** slirp4netns's sandbox shows the device by another path, in a file system that is not mounted. */
function tunDescriptors(pid: number): number[] {
  const directory = `/proc/${pid}/fd`;
  return readdirSync(directory)
    .filter((name) => readlinkSync(join(directory, name)).endsWith("/net/tun"))
    .map(Number);
}

function makePersistent(pid: number, descriptor: number): void {
  const { syscall, ioctl } = numericCalls();
  const processDescriptor = Number(syscall(openProcess, pid, 0, 0));
  if (processDescriptor < 0) return;
  const own = Number(syscall(takeDescriptor, processDescriptor, descriptor, 0));
  closeSync(processDescriptor);
  if (own < 0) return;
  ioctl(own, setPersistent, 1);
  closeSync(own);
}
