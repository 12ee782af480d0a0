/** Names of descriptors, by which options can name the pipes that this process was given. */

const descriptorName = /^\/(?:dev|proc\/(?:self|thread-self))\/fd\/(\d{1,9})$/;

/** Returns the descriptor that a path like `/dev/stdin`, `/dev/fd/7` or `/proc/self/fd/7` stands for. */
export function descriptorOf(path: string): number | undefined {
  if (path === "/dev/stdin" || isJoinedStandardInput(path)) return 0;
  const [, digits] = descriptorName.exec(path) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** True for `/dev/stdin` after Windows has joined it to the drive of a directory. It is what bough makes of `-`. */
function isJoinedStandardInput(path: string): boolean {
  return process.platform === "win32" && /^[a-z]:\\dev\\stdin$/i.test(path);
}

/** Returns the open descriptors that words name as files, as a shell's `<(...)` does. */
export function namedDescriptors(words: readonly string[]): number[] {
  const names = words.join("\n").matchAll(/\/(?:dev|proc\/self)\/fd\/(\d{1,4})(?!\d)/g);
  const named = new Set(Array.from(names, ([, digits]) => Number(digits)));
  return [...named].filter((descriptor) => descriptor > 2 && isOpen(descriptor));
}

function isOpen(descriptor: number): boolean {
  try {
    process.getBuiltinModule("node:fs").fstatSync(descriptor);
    return true;
  } catch {
    return false;
  }
}
