import type { Stats } from "node:fs";
import { basename, dirname } from "node:path";
import { BoughError } from "../../errors.ts";
import { type Environment, helperEnvironment, locate } from "../system/programs.ts";
import type { ImageView } from "./image-view.ts";

/** PAX, reproducible, and with everything that a file system of Linux holds. */
const options = [
  "--format=posix",
  "--pax-option=delete=atime,delete=ctime",
  "--sort=name",
  "--numeric-owner",
  "--sparse",
  "--xattrs",
  "--xattrs-include=*",
  // overlayfs's own marks say nothing about the image.
  "--xattrs-exclude=*.overlay.*",
];

/**
 * An archive of what is at `path`, as it is written: a directory's entries are named relative to it (`./...`), anything else
 * by its own name. Closes the view at the end.
 */
export function streamArchive(
  environment: Environment,
  path: string,
  stats: Stats,
  view: ImageView,
): ReadableStream<Uint8Array> {
  const [directory, name] = stats.isDirectory() ? [path, "."] : [dirname(path), basename(path)];
  const tar = Bun.spawn(
    [locate("tar", environment), "--create", ...options, `--directory=${directory}`, "--", name],
    { env: helperEnvironment(environment), stdin: "ignore", stdout: "pipe", stderr: "pipe", detached: true },
  );
  const said = new Response(tar.stderr).text();
  const chunks = tar.stdout[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done !== true) {
        controller.enqueue(value);
        return;
      }
      const status = await tar.exited;
      view.close();
      if (status === 0) controller.close();
      else controller.error(new BoughError(`the archive is incomplete: ${(await said).trim()}`));
    },
    cancel() {
      tar.kill("SIGKILL");
      view.close();
    },
  });
}
