import { closeSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { numericCalls } from "../system/libc.ts";

/** System calls that have one number on all architectures, and `TUNSETPERSIST` of linux/if_tun.h. */
const [openProcess, takeDescriptor, setPersistent] = [434, 438, 0x400454cb];

/**
 * Leaves the network devices that a process has made to its network namespace, which takes them along when nobody is in it any more.
 * A device that goes with its process keeps the process from ending for some 15 ms, in which the kernel makes sure that nobody
 * uses it. Where the kernel does not let this process do so, they go like that.
 */
export function leaveDevices(pid: number): void {
  try {
    for (const descriptor of tunDescriptors(pid)) makePersistent(pid, descriptor);
  } catch {
    // It has ended, or there is no such call: Linux before 5.6.
  }
}

/** Its sandbox shows the device by another path: that of a file system which is mounted nowhere. */
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
