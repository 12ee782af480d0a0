import { chmodSync, lstatSync, mkdirSync, statSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { BoughError, messageOf } from "../errors.ts";
import { readTar } from "../image/tar-reader.ts";
import type { Service } from "../service/client.ts";
import type { Invocation } from "./command.ts";
import { type Extracted, extractArchive } from "./extract.ts";
import type { ImagePath } from "./image-path.ts";
import { checkLocalName } from "./local-name.ts";

/** Where on this machine something is to go. */
export interface LocalPlace {
  /** Absolute. */
  local: string;
  /** It was given as a directory. */
  endsWithSlash: boolean;
}

/** Where it has ended up. */
export interface Copied extends Extracted {
  path: string;
}

/** Under another name until it is whole: whoever finds the file finds all of it. */
export async function copyFile(
  content: ReadableStream<Uint8Array>,
  { image, path }: ImagePath,
  { local, endsWithSlash }: LocalPlace,
  service: Service,
  { runtime }: Invocation,
): Promise<Copied> {
  const isDirectory = statSync(local, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isDirectory && endsWithSlash) throw new BoughError(`${local} is no directory`, { kind: "usage" });
  const name = posix.basename(path);
  if (isDirectory) checkLocalName(name, runtime.platform);
  const to = isDirectory ? join(local, name) : local;
  const temporary = `${to}.bough-${crypto.randomUUID().slice(0, 8)}`;
  try {
    const writer = Bun.file(temporary).writer();
    let bytes = 0;
    for await (const chunk of content) {
      runtime.signal.throwIfAborted();
      bytes += chunk.byteLength;
      writer.write(chunk);
      await writer.flush();
    }
    await writer.end();
    // The list alone has the mode.
    const [listed] = await service.listFiles(image, path);
    if (listed?.type === "file" && listed.mode !== null) chmodSync(temporary, listed.mode & 0o777);
    await rename(temporary, to);
    return { path: to, files: 1, bytes };
  } catch (error) {
    await rm(temporary, { force: true });
    if (error instanceof BoughError || runtime.signal.aborted) throw error;
    throw new BoughError(`cannot write ${to}: ${messageOf(error)}`, { cause: error });
  }
}

/** As `cp -r`: into a directory that exists, else as the directory of that name. */
export async function copyDirectory(
  { image, path, meansContents }: ImagePath,
  { local }: LocalPlace,
  service: Service,
  { runtime, log }: Invocation,
): Promise<Copied> {
  const archive = await service.openArchive(image, path);
  const stats = lstatSync(local, { throwIfNoEntry: false });
  const exists = stats !== undefined && statSync(local).isDirectory();
  if (stats !== undefined && !exists) {
    throw new BoughError(`${local} is a file, and ${path} is a directory`, { kind: "usage" });
  }
  const name = posix.basename(path);
  const isNamed = exists && !meansContents;
  if (isNamed) checkLocalName(name, runtime.platform);
  const to = isNamed ? join(local, name) : local;
  makeRoot(to);
  const extracted = await extractArchive(readTar(archive), to, {
    signal: runtime.signal,
    platform: runtime.platform,
    warn: log.warn,
  });
  return { path: to, ...extracted };
}

function makeRoot(path: string): void {
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) mkdirSync(path);
  } catch (error) {
    throw new BoughError(`cannot make ${path}: ${messageOf(error)}`, {
      hint: `Is there a directory ${dirname(path)}?`,
      cause: error,
    });
  }
}
