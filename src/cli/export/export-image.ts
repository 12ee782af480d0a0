import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { findWrongProgram } from "../../engine/system/program-trials.ts";
import { findProgram, helperEnvironment } from "../../engine/system/programs.ts";
import { BoughError } from "../../errors.ts";
import type { Compression } from "../../image/compression.ts";
import {
  type ImageToWrite,
  type WrittenImage,
  writeDockerArchive,
  writeOciLayout,
  writeSkopeoDirectory,
} from "../../image/image-writer.ts";
import { containerdNameAnnotation, nameAnnotation } from "../../image/oci-layout.ts";
import { type OutputFiles, writeToArchive, writeToDirectory } from "../../image/output-files.ts";
import { type TreeToWrite, writeTreeTar } from "../../image/tree-tar.ts";
import { findWriteError } from "../../paths/write-probe.ts";
import { endHelper, startHelper } from "../../programs/helper.ts";
import type { Runtime } from "../process/runtime.ts";
import { openScratch, withScratchHint } from "../process/scratch.ts";
import { writeChunks } from "../process/write-error.ts";
import type { Destination } from "./destination.ts";
import { isReplacedBy, readManifests, writeWholeDirectory, writeWholeFile } from "./output-places.ts";

interface ExportJob {
  /** Called only if the destination takes layers. */
  content: () => Promise<ImageToWrite>;
  /** All of the image's files in one archive. */
  tree: () => Promise<ReadableStream<Uint8Array>>;
  /** The files of the images for all platforms, for a plain archive. */
  trees: readonly TreeToWrite[];
  /** The time of all files in a plain archive; `undefined`: their own. */
  fileTime: number | undefined;
  compression: Compression;
  runtime: Runtime;
}

/** Writes an image to this machine. Returns `undefined` for a plain tree, which has no digest. */
export async function exportImage(
  destination: Exclude<Destination, { kind: "registry" | "daemon" }>,
  job: ExportJob,
): Promise<WrittenImage | undefined> {
  const { compression, content } = job;
  switch (destination.kind) {
    case "oci":
      return writeLayout(destination, await content(), compression);
    case "oci-archive": {
      const image = await content();
      return writeArchive(destination.path, job.runtime, (files) =>
        writeOciLayout(files, image, { compression, entries: entriesFor(destination) }),
      );
    }
    case "docker-archive": {
      const image = await content();
      return writeArchive(destination.path, job.runtime, (files) =>
        writeDockerArchive(files, image, namesOf(destination)),
      );
    }
    case "dir": {
      const image = await content();
      return writeWholeDirectory(destination.path, (directory) =>
        writing(writeToDirectory(directory), (files) => writeSkopeoDirectory(files, image, compression)),
      );
    }
    case "rootfs":
      await writeWholeDirectory(destination.path, async (directory) =>
        unpackTree(await job.tree(), directory, job.runtime),
      );
      return undefined;
    case "tar":
      await writeTree(writeTreeTar(job.trees, job.fileTime), destination.path, job.runtime);
      return undefined;
  }
}

type OciDestination = Extract<Destination, { kind: "oci" | "oci-archive" }>;

/** Returns the annotations of an image's entries in an index, as buildx writes them: an entry for each name. */
function entriesFor({ name, wholeNames = [] }: OciDestination): Record<string, string>[] {
  if (wholeNames.length > 0)
    return wholeNames.map((whole) => ({
      [containerdNameAnnotation]: whole,
      [nameAnnotation]: whole.slice(whole.lastIndexOf(":") + 1),
    }));
  return name === undefined ? [] : [{ [nameAnnotation]: name }];
}

function namesOf({
  name,
  otherNames = [],
}: Extract<Destination, { kind: "docker-archive" }>): readonly string[] {
  return name === undefined ? [] : [name, ...otherNames];
}

/** Writes an archive. For standard output it is spooled: a layer's size comes first, and is known only after it is packed. */
async function writeArchive(
  path: string | undefined,
  runtime: Runtime,
  write: (files: OutputFiles) => Promise<WrittenImage>,
): Promise<WrittenImage> {
  if (path !== undefined)
    return writeWholeFile(path, (temporary) => writing(writeToArchive(temporary, "r+"), write));
  using spool = openScratch("export", runtime.environment);
  const written = await writing(writeToArchive(spool.path), write).catch((error: unknown) => {
    throw withScratchHint(error, spool);
  });
  await writeChunks(Bun.file(spool.path).stream(), runtime);
  return written;
}

async function writing<T>(files: OutputFiles, write: (files: OutputFiles) => Promise<T>): Promise<T> {
  using open = files;
  return await write(open);
}

/** Writes an OCI layout. An existing one keeps its other images, and its index is replaced last. */
async function writeLayout(
  destination: Extract<Destination, { kind: "oci" }>,
  image: ImageToWrite,
  compression: Compression,
): Promise<WrittenImage> {
  const { path } = destination;
  const entries = entriesFor(destination);
  const index = join(path, "index.json");
  if (!existsSync(index)) {
    return writeWholeDirectory(path, (directory) =>
      writing(writeToDirectory(directory), (files) => writeOciLayout(files, image, { compression, entries })),
    );
  }
  const named = entries.length === 0 ? [{}] : entries;
  const manifests = readManifests(index).filter(
    (manifest) => !named.some((entry) => isReplacedBy(manifest, entry)),
  );
  return writing(writeToDirectory(path), (files) =>
    writeOciLayout(files, image, { compression, entries, manifests }),
  );
}

async function writeTree(
  tree: AsyncIterable<Uint8Array>,
  path: string | undefined,
  runtime: Runtime,
): Promise<void> {
  if (path === undefined) return writeChunks(tree, runtime);
  await writeWholeFile(path, async (temporary) => {
    await using file = await open(temporary, "r+");
    for await (const chunk of tree) {
      runtime.signal.throwIfAborted();
      await file.writeFile(chunk);
    }
  });
}

/** Unpacks an archive of an image's files with owners, modes and extended attributes, which needs root or a user namespace. */
export async function unpackTree(
  tree: ReadableStream<Uint8Array>,
  directory: string,
  runtime: Runtime,
): Promise<void> {
  const { environment, signal, userId } = runtime;
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
  const tar = startHelper(command, { environment: helperEnvironment(environment) });
  const said = new Response(tar.stderr).text();
  const kill = () => endHelper(tar);
  signal.addEventListener("abort", kill, { once: true });
  try {
    const sent = send(tree, tar.stdin, signal);
    sent.catch(() => undefined);
    const status = await Promise.race([tar.exited, sent.then(() => tar.exited)]);
    signal.throwIfAborted();
    if (status !== 0) throw await unpackError(await said, directory, runtime);
    await sent;
  } finally {
    signal.removeEventListener("abort", kill);
    endHelper(tar);
  }
}

/** Returns the error of a disk that can't be written to, else what tar says: it exits with 2 for both. */
async function unpackError(said: string, directory: string, runtime: Runtime) {
  return (
    findWriteError(directory) ??
    (await findWrongProgram(["tar"], runtime)) ??
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
