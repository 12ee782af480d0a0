import type { Difference } from "../differential/compare.ts";

/**
 * True for a file that Docker puts into each new container, if bough's image has no entry of that name. An exported container has
 * no entry for its root, either.
 */
export function isLeftByDocker({ path, bough, other }: Difference): boolean {
  if (path === "/") return other === undefined;
  return bough === undefined && other?.line === made[path];
}

const directory = "directory 0755 0:0";
const emptyFile = `file 0755 0:0 0 bytes sha256:${new Bun.CryptoHasher("sha256").digest("hex").slice(0, 16)}`;

const made: Record<string, string> = {
  "/.dockerenv": emptyFile,
  "/dev": directory,
  "/dev/console": emptyFile,
  "/dev/pts": directory,
  "/dev/shm": directory,
  "/etc": directory,
  "/etc/hostname": emptyFile,
  "/etc/hosts": emptyFile,
  "/etc/mtab": 'symlink 0777 0:0 -> "/proc/mounts"',
  "/etc/resolv.conf": emptyFile,
  "/proc": directory,
  "/sys": directory,
};
