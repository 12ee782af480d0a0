import type { Stats } from "node:fs";
import { basename, dirname } from "node:path";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { beforeDeadline, endHelper, startHelper } from "../../programs/helper.ts";
import { archiveOptions, findWrongProgram } from "../system/program-trials.ts";
import { findProgram, helperEnvironment } from "../system/programs.ts";

/** The maximum time between two writes of tar: it sorts a directory of a million names before it writes the first one. */
const maxSilentSeconds = 300;

/**
 * Streams an archive of `path` while tar writes it. A directory's entries are named relative to it (`./...`), anything else by
 * its own name. Disposes of the view at the end.
 */
export function streamArchive(
  { environment, clock }: { environment: Environment; clock: Clock },
  path: string,
  stats: Stats,
  view: Disposable,
): ReadableStream<Uint8Array> {
  const [directory, name] = stats.isDirectory() ? [path, "."] : [dirname(path), basename(path)];
  const command = [
    findProgram("tar", environment),
    "--create",
    ...archiveOptions,
    `--directory=${directory}`,
    "--",
    name,
  ];
  const tar = startHelper(command, { environment: helperEnvironment(environment) });
  const deadline = { clock, seconds: maxSilentSeconds, failure: "wrote no output" };
  const errorOutput = new Response(tar.stderr).text();
  const chunks = tar.stdout[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await beforeDeadline(tar, command, chunks.next(), deadline).catch((error) => {
        view[Symbol.dispose]();
        throw error;
      });
      if (done !== true) {
        controller.enqueue(value);
        return;
      }
      const status = await tar.exited;
      view[Symbol.dispose]();
      if (status === 0) controller.close();
      else
        controller.error(
          (await findWrongProgram(["tar"], { environment, clock })) ?? incomplete((await errorOutput).trim()),
        );
    },
    async cancel() {
      endHelper(tar);
      view[Symbol.dispose]();
      // Unread output would keep tar's pipe open.
      await chunks.return?.();
    },
  });
}

function incomplete(reason: string): BoughError {
  return new BoughError(`the archive is incomplete: ${reason}`);
}
