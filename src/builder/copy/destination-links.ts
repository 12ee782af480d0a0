import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import type { Staged } from "../staging/staged.ts";

/** Linux's own limit for one path. */
const maxLinks = 40;

/**
 * Where a destination leads that is a link, staged or in the image: followed inside the root, whether it is there or not.
 * `readLink` says the target of a link in the image.
 */
export async function followLinks(
  path: string,
  staged: Staged,
  readLink: (path: string) => Promise<string | undefined>,
): Promise<string> {
  const targetOf = async (at: string) => {
    const entry = staged.get(at);
    if (entry !== undefined) return entry.type === "symlink" ? entry.target : undefined;
    return readLink(at);
  };
  // What is on the way matters only then: otherwise it is followed as the file is put in place.
  if ((await targetOf(path)) === undefined) return path;
  let pending = namesIn(path);
  let at = "/";
  let links = 0;
  for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
    const next = posix.join(at, name);
    const target = await targetOf(next);
    if (target === undefined) {
      at = next;
      continue;
    }
    links += 1;
    if (links > maxLinks)
      throw new BoughError(`${path}: too many links`, {
        hint: "Symbolic links there lead to each other in a circle.",
      });
    if (target.startsWith("/")) at = "/";
    pending = [...namesIn(target), ...pending];
  }
  return at;
}

function namesIn(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}
