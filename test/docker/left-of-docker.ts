import type { Difference } from "../differential/compare.ts";

/**
 * What Docker puts into a container as it is created, and no image has: seen only where bough has nothing of that name. An
 * exported container has no entry for its root.
 */
export function isLeftOfDocker({ path, bough, other }: Difference): boolean {
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
