import type { SpecialFile } from "../../context/sources/entry.ts";
import type { WhyLeftOut } from "../../context/sources/special-file.ts";
import type { Dialect } from "../dialect.ts";
import type { ServiceSupport } from "../service-support.ts";

/**
 * Returns which special files of a context are left out, and why. With `--docker` they are copied as in BuildKit, which always runs as
 * root, where the service can make them, and a socket becomes an empty file. By default all are left out.
 */
export function specialFilesOf(dialect: Dialect, supports: ServiceSupport): WhyLeftOut | undefined {
  return dialect.copiesAsBuildKit ? (special) => whyUnmade(special, supports) : undefined;
}

/** Returns why a service can't make a special file; `undefined` if it can. */
export async function whyUnmade(
  special: SpecialFile,
  supports: Pick<ServiceSupport, "specialFiles">,
): Promise<string | undefined> {
  if (special.kind === "socket") return undefined;
  const supported = await supports.specialFiles();
  if (supported === "none") return "the service can't make them";
  if (special.kind === "pipe" || (supported === "all" && !isWhiteout(special))) return undefined;
  return "only root can make them";
}

/** A character device 0:0 is overlayfs's mark of a deleted file. */
function isWhiteout(special: SpecialFile): boolean {
  return special.kind === "character-device" && special.major === 0 && special.minor === 0;
}
