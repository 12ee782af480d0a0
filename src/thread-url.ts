import { pathToFileURL } from "node:url";

/**
 * Where a thread's own program is, by its path in src/. A compiled program's modules lie together; the programs that it
 * was given besides `main.ts` (see scripts/build) keep their places beside that.
 */
export function threadUrl(path: string): string {
  return new URL(path, Bun.isStandaloneExecutable ? pathToFileURL(Bun.main) : import.meta.url).href;
}
