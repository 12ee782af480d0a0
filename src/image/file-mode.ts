/** The mode of a directory that nothing describes. */
export const directoryMode = 0o755;

/** Returns `-rwxr-xr-x`: a file's type and permissions as ls(1) shows them. */
export function formatMode(mode: number, type: keyof typeof letters): string {
  return (
    letters[type] +
    triple(mode >> 6, mode & 0o4000, "s") +
    triple(mode >> 3, mode & 0o2000, "s") +
    triple(mode, mode & 0o1000, "t")
  );
}

const letters = { file: "-", directory: "d", symlink: "l", socket: "s", fifo: "p", other: "?" } as const;

function triple(bits: number, special: number, letter: string): string {
  const execute = (bits & 1) !== 0;
  const last = special === 0 ? (execute ? "x" : "-") : execute ? letter : letter.toUpperCase();
  return `${bits & 4 ? "r" : "-"}${bits & 2 ? "w" : "-"}${last}`;
}

/** Returns permission bits in the API's form: `0644`. */
export function octalMode(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}
