/** C library functions that neither Bun nor Node provides. */
import { dlopen, type FFIFunction } from "bun:ffi";
import { BoughError, messageOf } from "../errors.ts";
import { once } from "../once.ts";

/** Throws on a system with another C library. */
export const libc = once(
  () =>
    openLibrary({
      pipe2: { args: ["buffer", "i32"], returns: "i32" },
      memfd_create: { args: ["buffer", "u32"], returns: "i32" },
      syscall: { args: ["i64", "i64", "buffer", "i64"], returns: "i64" },
      socket: { args: ["i32", "i32", "i32"], returns: "i32" },
      bind: { args: ["i32", "buffer", "i32"], returns: "i32" },
      listen: { args: ["i32", "i32"], returns: "i32" },
      fcntl: { args: ["i32", "i32", "i32"], returns: "i32" },
      unshare: { args: ["i32"], returns: "i32" },
      setns: { args: ["i32", "i32"], returns: "i32" },
      execve: { args: ["buffer", "buffer", "buffer"], returns: "i32" },
      fchdir: { args: ["i32"], returns: "i32" },
      umount2: { args: ["buffer", "i32"], returns: "i32" },
      linkat: { args: ["i32", "buffer", "i32", "buffer", "i32"], returns: "i32" },
      mount: { args: ["buffer", "buffer", "buffer", "u64", "buffer"], returns: "i32" },
    }).symbols,
);

/** Functions with only numeric arguments. Throws as `libc` does. */
export const numericCalls = once(
  () =>
    openLibrary({
      syscall: { args: ["i64", "i64", "i64", "i64"], returns: "i64" },
      ioctl: { args: ["i32", "u64", "i64"], returns: "i32" },
    }).symbols,
);

/** Opens the C library; musl's has this name, too. Bun compiles the calls, and so needs memory that it may execute. */
export function openLibrary<Functions extends Record<string, FFIFunction>>(functions: Functions) {
  try {
    return dlopen("libc.so.6", functions);
  } catch (error) {
    if (!messageOf(error).includes("requires the JIT")) throw error;
    throw new BoughError("the engine cannot reserve memory for compiled code", {
      hint: "Raise the limit of virtual memory: `ulimit -v` shows it in kB, and 8 GB are enough.",
      cause: error,
    });
  }
}

/** `O_CLOEXEC`, which Node does not define. */
export const closeOnExec = 0o2000000;

/** The values of linux/memfd.h. */
const memoryFile = { closeOnExec: 0x1, allowSealing: 0x2, executable: 0x10 };

/** Opens a file in memory that may be executed and sealed. Returns its descriptor; `undefined` if the system allows none. */
export function openMemoryFile(name: string): number | undefined {
  const open = (flags: number) => libc().memfd_create(Buffer.from(`${name}\0`), flags);
  const flags = memoryFile.closeOnExec | memoryFile.allowSealing;
  const descriptor = open(flags | memoryFile.executable);
  // Before Linux 6.3 all files in memory are executable, and the flag is unknown. Later kernels may require it.
  const found = descriptor < 0 ? open(flags) : descriptor;
  return found < 0 ? undefined : found;
}
