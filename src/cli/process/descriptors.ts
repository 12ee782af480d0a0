/** Paths of descriptors, by which options can name the pipes that this process has inherited. */

const descriptorName = /^\/(?:dev|proc\/(?:self|thread-self))\/fd\/(\d{1,9})$/;

/** Returns the descriptor of a path such as `/dev/stdin`, `/dev/fd/7` or `/proc/self/fd/7`; `undefined` for other paths. */
export function descriptorOf(path: string): number | undefined {
  if (path === "/dev/stdin" || isJoinedStandardInput(path)) return 0;
  const [, digits] = descriptorName.exec(path) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** True for `/dev/stdin`, which bough uses for `-`, after Windows has resolved it on the drive of a directory. */
function isJoinedStandardInput(path: string): boolean {
  return process.platform === "win32" && /^[a-z]:\\dev\\stdin$/i.test(path);
}

/** Returns the open descriptors whose paths occur in the words, such as those of a shell's `<(...)`. */
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
