import { posix } from "node:path";
import { BoughError } from "../../errors.ts";

/** PATH_MAX of Linux, without the NUL at the end (limits.h). */
const maxBytes = 4095;

/**
 * The absolute path that a WORKDIR or a destination names.
 *
 * @throws BoughError for one that no image can have
 */
export function pathInImage(workdir: string, path: string): string {
  const resolved = posix.resolve(workdir, path);
  const bytes = Buffer.byteLength(resolved);
  if (bytes <= maxBytes) return resolved;
  throw new BoughError(
    `a path in the image is ${bytes} bytes long, and Linux takes ${maxBytes}: ${resolved.slice(0, 80)}...`,
    { kind: "usage" },
  );
}
