/** C library functions that neither Bun nor Node provides. */
import { dlopen } from "bun:ffi";

/** Throws on a system with another C library. */
export const libc = once(
  () =>
    dlopen("libc.so.6", {
      pipe2: { args: ["buffer", "i32"], returns: "i32" },
      memfd_create: { args: ["buffer", "u32"], returns: "i32" },
      syscall: { args: ["i64", "i64", "buffer", "i64"], returns: "i64" },
      fcntl: { args: ["i32", "i32", "i32"], returns: "i32" },
      unshare: { args: ["i32"], returns: "i32" },
      setns: { args: ["i32", "i32"], returns: "i32" },
      fchdir: { args: ["i32"], returns: "i32" },
      chroot: { args: ["buffer"], returns: "i32" },
      mount: { args: ["buffer", "buffer", "buffer", "u64", "buffer"], returns: "i32" },
    }).symbols,
);

/** Functions with only numeric arguments. Throws as `libc` does. */
export const numericCalls = once(
  () =>
    dlopen("libc.so.6", {
      syscall: { args: ["i64", "i64", "i64", "i64"], returns: "i64" },
      ioctl: { args: ["i32", "u64", "i64"], returns: "i32" },
    }).symbols,
);

/** `O_CLOEXEC`, which Node does not define. */
export const closeOnExec = 0o2000000;

function once<Library>(load: () => Library): () => Library {
  let loaded: Library | undefined;
  return () => {
    loaded ??= load();
    return loaded;
  };
}
