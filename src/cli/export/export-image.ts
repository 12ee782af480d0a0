import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Compression } from "../../image/compress.ts";
import {
  type ImageToWrite,
  type WrittenImage,
  writeDockerArchive,
  writeOciLayout,
  writeSkopeoDirectory,
} from "../../image/image-writer.ts";
import { type OutputFiles, writeToArchive, writeToDirectory } from "../../image/output-files.ts";
import type { Runtime } from "../process/runtime.ts";
import { writeChunks } from "../process/write-chunks.ts";
import type { Destination } from "./destination.ts";
import { writeWholeDirectory, writeWholeFile } from "./finished-path.ts";
import { nameIn, readManifests } from "./layout-index.ts";
import { openScratch } from "./scratch.ts";
import { unpackTree } from "./unpack-tree.ts";

interface ExportJob {
  /** Called only if the destination takes layers. */
  content: () => Promise<ImageToWrite>;
  /** All of the image's files in one archive. */
  tree: () => Promise<ReadableStream<Uint8Array>>;
  compression: Compression;
  runtime: Runtime;
}

/** Writes an image to this machine. Returns `undefined` for a plain tree, which has no digest. */
export async function exportImage(
  destination: Exclude<Destination, { kind: "registry" }>,
  job: ExportJob,
): Promise<WrittenImage | undefined> {
  const { compression, content } = job;
  switch (destination.kind) {
    case "oci":
      return writeLayout(destination, await content(), compression);
    case "oci-archive": {
      const image = await content();
      return writeArchive(destination.path, job.runtime, (files) =>
        writeOciLayout(files, image, { compression, name: destination.name }),
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
      await writeTree(await job.tree(), destination.path, job.runtime);
      return undefined;
  }
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
    return writeWholeFile(path, (temporary) => writing(writeToArchive(temporary), write));
  using spool = openScratch("export", runtime.environment);
  const written = await writing(writeToArchive(spool.path), write);
  await writeChunks(Bun.file(spool.path).stream(), runtime);
  return written;
}

async function writing<T>(files: OutputFiles, write: (files: OutputFiles) => Promise<T>): Promise<T> {
  using open = files;
  return await write(open);
}

/** Writes an OCI layout. An existing one keeps its other images, and its index is replaced last. */
async function writeLayout(
  { path, name }: { path: string; name: string | undefined },
  image: ImageToWrite,
  compression: Compression,
): Promise<WrittenImage> {
  const index = join(path, "index.json");
  if (!existsSync(index)) {
    return writeWholeDirectory(path, (directory) =>
      writing(writeToDirectory(directory), (files) => writeOciLayout(files, image, { compression, name })),
    );
  }
  const manifests = readManifests(index).filter((manifest) => nameIn(manifest) !== name);
  return writing(writeToDirectory(path), (files) =>
    writeOciLayout(files, image, { compression, name, manifests }),
  );
}

async function writeTree(
  tree: ReadableStream<Uint8Array>,
  path: string | undefined,
  runtime: Runtime,
): Promise<void> {
  if (path === undefined) return writeChunks(tree, runtime);
  await writeWholeFile(path, async (temporary) => {
    await using file = await open(temporary, "wx", 0o644);
    for await (const chunk of tree) {
      runtime.signal.throwIfAborted();
      await file.writeFile(chunk);
    }
  });
}
