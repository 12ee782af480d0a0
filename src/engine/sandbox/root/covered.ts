/** The directories that the sandbox mounts its own file systems on: what an image has there is not to be seen inside. */
export const coveredDirectories = ["/dev", "/proc", "/sys"] as const;

/** Whether a path without links leads to or below one of `directories`. */
export function isBelow(path: string, directories: readonly string[]): boolean {
  return directories.some((directory) => path === directory || path.startsWith(`${directory}/`));
}
