import { endHelper, startHelper } from "../../engine/system/helper.ts";
import { type Environment, findProgram, helperEnvironment } from "../../engine/system/programs.ts";
import { explainUnknownOption } from "../../engine/system/unknown-option.ts";
import { BoughError } from "../../errors.ts";
import type { Runtime } from "../process/runtime.ts";

/** Unpacks an archive of an image's files with owners, modes and extended attributes, which needs root or a user namespace. */
export async function unpackTree(
  tree: ReadableStream<Uint8Array>,
  directory: string,
  { environment, signal, userId }: Runtime,
): Promise<void> {
  if (userId !== 0) {
    await tree.cancel();
    throw new BoughError("only root can write files with the image's owners", {
      hint: "Export it as tar:FILE, or as root; with the embedded engine any user can.",
    });
  }
  const options = [
    "--xattrs",
    "--xattrs-include=*",
    "--numeric-owner",
    "--same-owner",
    "--preserve-permissions",
  ];
  const command = [findProgram("tar", environment), "--extract", ...options, `--directory=${directory}`];
  const tar = startHelper(command, { environment: englishEnvironment(environment) });
  const said = new Response(tar.stderr).text();
  const kill = () => endHelper(tar);
  signal.addEventListener("abort", kill, { once: true });
  try {
    const sent = send(tree, tar.stdin, signal);
    sent.catch(() => undefined);
    const status = await Promise.race([tar.exited, sent.then(() => tar.exited)]);
    signal.throwIfAborted();
    if (status !== 0) throw failureOf(await said, environment);
    await sent;
  } finally {
    signal.removeEventListener("abort", kill);
    endHelper(tar);
  }
}

/** Messages are read here, and names may be UTF-8. */
function englishEnvironment(environment: Environment): Record<string, string> {
  return { ...helperEnvironment(environment), LC_ALL: "C.UTF-8" };
}

/** Errors of the disk that tar's messages name; each concerns the whole destination. */
const diskErrors: Readonly<Record<string, string>> = {
  "No space left on device": "ENOSPC",
  "Disk quota exceeded": "EDQUOT",
  "Input/output error": "EIO",
  "Read-only file system": "EROFS",
};

/** Returns an error with the cause in tar's messages; one of the disk is that of a system call. */
function failureOf(said: string, environment: Environment): Error {
  const found = Object.entries(diskErrors).find(([text]) => said.includes(`: ${text}\n`));
  if (found !== undefined) return Object.assign(new Error(found[0]), { code: found[1] });
  return (
    explainUnknownOption(said, environment) ??
    // The last message only says that there were errors.
    new BoughError(`cannot unpack the image's files: ${said.trim().split("\n")[0] ?? ""}`)
  );
}

async function send(tree: ReadableStream<Uint8Array>, to: Bun.FileSink, signal: AbortSignal): Promise<void> {
  for await (const chunk of tree) {
    signal.throwIfAborted();
    try {
      // Returns a number, or a promise that rejects if tar has exited.
      await to.write(chunk);
      await to.flush();
    } catch {
      // tar's exit code and message say more.
      return;
    }
  }
  await to.end();
}
