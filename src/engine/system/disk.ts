import { BoughError } from "../../errors.ts";
import { type Environment, helperEnvironment, locate } from "./programs.ts";

/**
 * Has everything that was written to the file system of `path` reach the disk. A layer can have many thousand files, which
 * no call of Bun's syncs at once.
 */
export async function syncToDisk(environment: Environment, path: string): Promise<void> {
  const sync = Bun.spawn([locate("sync", environment), "-f", path], {
    env: helperEnvironment(environment),
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  if ((await sync.exited) !== 0) {
    throw new BoughError(
      `could not write ${path} to disk: ${(await new Response(sync.stderr).text()).trim()}`,
    );
  }
}
