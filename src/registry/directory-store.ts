import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { access, mkdir, open as openFile, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { systemClock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { blobPath, digestOf, isDigest } from "../image/digest.ts";
import { type Descriptor, mediaTypes, nameAnnotation } from "../image/oci-layout.ts";
import { tryLock } from "../lock-file.ts";
import { renameOver } from "../paths/rename-over.ts";
import { errorCode, reasonOf } from "../system-error.ts";
import {
  type BlobStore,
  cheapWriteIntervalMilliseconds,
  MissingBlobError,
  typeOfManifest,
  verified,
  WrongBlobError,
} from "./blob-store.ts";

const maxIndexBytes = 64 * 1024 * 1024;
/** The file that writers lock in turn. An archive of the directory may contain it. */
const lockName = ".lock";
const lockRetryMilliseconds = 20;
const maxCheckedBytes = 4 * 1024 * 1024;

/** Opens an OCI image layout, which the first write makes. */
export function createDirectoryStore(path: string): BlobStore {
  const address = `dir:${path}`;
  const place = ({ digest }: Pick<Descriptor, "digest">) => {
    if (!isDigest(digest))
      throw new BoughError(`${address}: ${JSON.stringify(digest)} is not a digest of SHA-256`);
    return join(path, blobPath(digest));
  };
  const files = createFiles(address);
  const { orMissing, replace, named } = files;
  const { readIndex, changeIndex } = createIndex(path, files);

  const has = async (digest: string) =>
    (await orMissing(async () => {
      await access(place({ digest }));
      return true;
    })) === true;

  /** Returns true if a blob need not be written: its size is right, and if it is small, its digest as well. */
  const isWhole = async (blob: Pick<Descriptor, "digest" | "size">) =>
    (await orMissing(async () => {
      if ((await stat(place(blob))).size !== blob.size) return false;
      return blob.size > maxCheckedBytes || digestOf(await readFile(place(blob))) === blob.digest;
    })) === true;

  return {
    address,
    async getManifest(reference) {
      const listed = await readIndex();
      const found = listed.find((entry) =>
        isDigest(reference) ? entry.digest === reference : nameOf(entry) === reference,
      );
      const digest = found?.digest ?? (isDigest(reference) ? reference : undefined);
      const bytes = digest === undefined ? undefined : await orMissing(() => readFile(place({ digest })));
      if (digest === undefined || bytes === undefined) return undefined;
      if (digestOf(bytes) !== digest) throw new WrongBlobError(`${place({ digest })} has another digest`);
      return { digest, mediaType: found?.mediaType ?? typeOfManifest(bytes), bytes };
    },
    async findDigest(tag) {
      return (await readIndex()).find((entry) => nameOf(entry) === tag)?.digest;
    },
    async putManifest(reference, { mediaType, bytes }) {
      const digest = digestOf(bytes);
      await replace(place({ digest }), bytes);
      const entry = { mediaType, digest, size: bytes.byteLength };
      const named = isDigest(reference) ? entry : { ...entry, annotations: { [nameAnnotation]: reference } };
      await changeIndex((manifests) => [
        ...manifests.filter((other) =>
          isDigest(reference)
            ? other.digest !== digest || nameOf(other) !== undefined
            : nameOf(other) !== reference,
        ),
        named,
      ]);
    },
    async removeManifest(reference) {
      await changeIndex((manifests) =>
        manifests.filter((entry) =>
          isDigest(reference) ? entry.digest !== reference : nameOf(entry) !== reference,
        ),
      );
    },
    hasBlob: ({ digest }) => has(digest),
    async openBlob(blob, signal, checks) {
      if (!(await has(blob.digest))) throw new MissingBlobError(`${address} has no blob ${blob.digest}`);
      signal.throwIfAborted();
      return verified(Bun.file(place(blob)).stream(), blob, place(blob), checks);
    },
    async putBlob(blob, open, signal) {
      if (await isWhole(blob)) return;
      await replace(place(blob), abortable(verified(open(), blob, "what is stored"), signal));
    },
    minWriteIntervalMilliseconds: cheapWriteIntervalMilliseconds,
    async mountBlob({ digest }) {
      return await has(digest);
    },
    async lock(signal) {
      await mkdir(path, { recursive: true }).catch((error: unknown) => {
        throw named(error);
      });
      for (;;) {
        const lock = attemptLock(join(path, lockName));
        if (lock !== "busy") return lock;
        await systemClock.sleep(lockRetryMilliseconds, signal);
      }
    },
  };
}

/** Reads and writes files of a layout. Messages name its address. */
function createFiles(address: string) {
  /** Returns what `read` returns, or `undefined` if there is no such file. */
  async function orMissing<T>(read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read();
    } catch (error) {
      if (["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "")) return undefined;
      throw named(error);
    }
  }

  function named(error: unknown): BoughError {
    return error instanceof BoughError
      ? error
      : new BoughError(`${address}: ${reasonOf(error)}`, { cause: error });
  }

  /** Replaces a file, after the new content is complete and on the disk. */
  async function replace(target: string, content: string | Uint8Array | AsyncIterable<Uint8Array>) {
    await mkdir(dirname(target), { recursive: true });
    const unfinished = join(dirname(target), `.${randomUUID()}`);
    try {
      if (typeof content === "string" || content instanceof Uint8Array) await writeFile(unfinished, content);
      else await pipeline(Readable.from(content), createWriteStream(unfinished));
      await sync(unfinished);
      renameOver(unfinished, target);
    } catch (error) {
      await rm(unfinished, { force: true });
      throw named(error);
    }
  }

  return { orMissing, replace, named };
}

/** The index of a layout, which lists its manifests. */
function createIndex(
  path: string,
  { orMissing, replace }: Pick<ReturnType<typeof createFiles>, "orMissing" | "replace">,
) {
  const indexPath = join(path, "index.json");
  /** Settles when the last change is written: changes happen one after the other. */
  let changed: Promise<void> = Promise.resolve();

  async function readIndex(): Promise<Descriptor[]> {
    const bytes = await orMissing(async () => {
      const { size } = await stat(indexPath);
      if (size > maxIndexBytes) throw new BoughError(`${indexPath} has more than ${maxIndexBytes} bytes`);
      return await readFile(indexPath, "utf8");
    });
    if (bytes === undefined) return [];
    try {
      const { manifests } = JSON.parse(bytes) as { manifests?: unknown };
      if (Array.isArray(manifests)) return manifests.filter(isDescriptor);
    } catch {
      // Not JSON.
    }
    throw new BoughError(`${indexPath} lists no manifests: its directory is not an OCI image layout`);
  }

  async function changeIndex(change: (manifests: Descriptor[]) => Descriptor[]): Promise<void> {
    const done = changed.then(async () => {
      const manifests = change(await readIndex());
      const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests };
      await replace(join(path, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
      await replace(indexPath, JSON.stringify(index));
    });
    changed = done.catch(() => undefined);
    await done;
  }

  return { readIndex, changeIndex };
}

/** Syncs a file. Windows does that only for one that is open for writing. */
async function sync(path: string): Promise<void> {
  await using file = await openFile(path, "r+");
  await file.sync();
}

function attemptLock(path: string): Disposable | undefined | "busy" {
  try {
    return tryLock(path) ?? "busy";
  } catch {
    // Most likely the file system has no locks. If nothing can be written there at all, the next write says why.
    return undefined;
  }
}

function isDescriptor(value: unknown): value is Descriptor {
  if (typeof value !== "object" || value === null) return false;
  const { digest, mediaType } = value as Partial<Record<keyof Descriptor, unknown>>;
  return isDigest(digest) && typeof mediaType === "string";
}

function nameOf({ annotations }: Descriptor): string | undefined {
  return annotations?.[nameAnnotation];
}

async function* abortable(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    yield chunk;
  }
}
