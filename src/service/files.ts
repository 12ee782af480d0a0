/** Deduplicated upload: each content once, and only where the service does not have it. */
import { stat } from "node:fs/promises";
import { BoughError, messageOf } from "../errors.ts";
import { childOf } from "./abort.ts";
import { asNumber, asRecord, asText } from "./json.ts";
import type { LocalFile, UploadProgress } from "./service.ts";
import type { Body, Transport } from "./transport.ts";

/** The local memory of what a service has: file ids by SHA-256. */
export interface KnownFiles {
  get(sha256: string): string | undefined;
  set(sha256: string, uuid: string): void;
  delete(sha256: string): void;
}

export interface FilesOptions {
  transport: Transport;
  signal: AbortSignal;
  knownFiles?: KnownFiles;
}

export interface Files {
  uploadFiles(
    files: readonly LocalFile[],
    progress?: (done: UploadProgress) => void,
  ): Promise<Map<string, string>>;
}

/** Above it a question is cheaper than sending the bytes for nothing. */
const askFirstAboveBytes = 1024 * 1024;
const uploadsAtOnce = 8;
/** Eight small files at once over a slow line. */
const smallUploadTimeoutMilliseconds = 180_000;
/** The question saves work, so it is not worth any: whatever is no clear answer means that the file is sent. */
const noAnswer = [400, 403, 404, 405, 406, 410, 500, 501, 502, 503, 504];

export function createFiles({ transport, signal, knownFiles }: FilesOptions): Files {
  let canAsk = true;

  async function findFile(sha256: string, stop: AbortSignal): Promise<string | undefined> {
    if (!canAsk) return undefined;
    const answer = await transport.call({
      method: "GET",
      path: `/v1/files/${sha256}`,
      repeatable: true,
      handles: noAnswer,
      signal: stop,
    });
    if (answer.status === 405 || answer.status === 501) canAsk = false;
    return asText(asRecord(answer.body)?.uuid);
  }

  async function sendSmall(file: LocalFile, stop: AbortSignal): Promise<string> {
    // Held in memory, so that the bytes that are sent are the bytes that were hashed.
    const bytes = await readWhole(file);
    if (bytes.byteLength !== file.size || sha256Of(bytes) !== file.sha256) throw changed(file);
    return checkedId(file, await post(() => bytes, stop, smallUploadTimeoutMilliseconds)).uuid;
  }

  async function sendLarge(file: LocalFile, stop: AbortSignal): Promise<string> {
    const before = await statOf(file);
    if (before.size !== BigInt(file.size)) throw changed(file);
    // A length that no longer fits ends the request as a connection fault: look whether that is why.
    const answer = await post(() => Bun.file(file.absolutePath), stop, 0).catch(async (error: unknown) => {
      if (!isSame(before, await statOf(file))) throw changed(file);
      throw error;
    });
    const stored = checkedId(file, answer);
    if (stored.sha256 === undefined) {
      // The server does not say what it got. Unchanged since before it was sent, and still the hash: that was sent.
      const hash = await hashFile(file);
      if (hash !== file.sha256 || !isSame(before, await statOf(file))) throw changed(file);
    }
    return stored.uuid;
  }

  function post(body: () => Body, stop: AbortSignal, timeoutMilliseconds: number): Promise<StoredFile> {
    return postFile(transport, body, { signal: stop, timeoutMilliseconds });
  }

  return {
    async uploadFiles(files, progress) {
      const ids = new Map<string, string>();
      const waiting = new Map<string, LocalFile>();
      const done: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
      for (const file of files) {
        if (ids.has(file.sha256) || waiting.has(file.sha256)) continue;
        const known = knownFiles?.get(file.sha256);
        if (known === undefined) {
          waiting.set(file.sha256, file);
        } else {
          ids.set(file.sha256, known);
          done.files++;
          done.reused++;
        }
      }
      if (done.files > 0) progress?.({ ...done });

      async function upload(file: LocalFile, stop: AbortSignal): Promise<void> {
        const large = file.size > askFirstAboveBytes;
        const found = large ? await findFile(file.sha256, stop) : undefined;
        const uuid = found ?? (await (large ? sendLarge(file, stop) : sendSmall(file, stop)));
        ids.set(file.sha256, uuid);
        knownFiles?.set(file.sha256, uuid);
        done.files++;
        if (found === undefined) done.sentBytes += file.size;
        else done.reused++;
        progress?.({ ...done });
      }
      await forEachAtOnce([...waiting.values()], uploadsAtOnce, signal, upload);
      return ids;
    },
  };
}

/** What `POST /v1/files` answered; a server may leave out all but the id. */
export interface StoredFile {
  uuid: string;
  sha256: string | undefined;
  size: number | undefined;
}

export async function postFile(
  transport: Transport,
  body: () => Body | undefined,
  options: { signal: AbortSignal; timeoutMilliseconds: number },
): Promise<StoredFile> {
  const answer = await transport.call({
    method: "POST",
    path: "/v1/files",
    headers: { "content-type": "application/octet-stream" },
    body,
    // The service deduplicates: twice the same bytes are one file.
    repeatable: true,
    ...options,
  });
  const record = asRecord(answer.body);
  const uuid = asText(record?.uuid);
  if (uuid === undefined) throw new BoughError("POST /v1/files answered without the file's uuid");
  return { uuid, sha256: asText(record?.sha256)?.toLowerCase(), size: asNumber(record?.size) };
}

function checkedId(file: LocalFile, stored: StoredFile): StoredFile {
  if (stored.sha256 !== undefined && stored.sha256 !== file.sha256) throw changed(file);
  return stored;
}

function changed(file: LocalFile): BoughError {
  return new BoughError(`${file.absolutePath} changed while it was being read`, {
    hint: "Build again once nothing writes to it any more.",
  });
}

async function readWhole(file: LocalFile): Promise<Uint8Array> {
  if ((await statOf(file)).size !== BigInt(file.size)) throw changed(file);
  try {
    return await Bun.file(file.absolutePath).bytes();
  } catch (error) {
    throw unreadable(file, error);
  }
}

function statOf(file: LocalFile) {
  return stat(file.absolutePath, { bigint: true }).catch((error: unknown) => {
    throw unreadable(file, error);
  });
}

type Stat = Awaited<ReturnType<typeof statOf>>;

function isSame(before: Stat, after: Stat): boolean {
  return (["dev", "ino", "size", "mtimeNs", "ctimeNs"] as const).every(
    (field) => before[field] === after[field],
  );
}

function unreadable(file: LocalFile, cause: unknown): BoughError {
  return new BoughError(`cannot read ${file.absolutePath}: ${messageOf(cause)}`, { cause });
}

function sha256Of(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

async function hashFile(file: LocalFile): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const chunk of Bun.file(file.absolutePath).stream()) hasher.update(chunk);
  return hasher.digest("hex");
}

/** Runs `work` for all items, at most `limit` at a time; the first failure stops the others. */
async function forEachAtOnce<T>(
  items: readonly T[],
  limit: number,
  parent: AbortSignal,
  work: (item: T, stop: AbortSignal) => Promise<void>,
): Promise<void> {
  parent.throwIfAborted();
  const stop = childOf(parent);
  let next = 0;
  async function worker(): Promise<void> {
    while (next < items.length && !stop.signal.aborted) {
      const item = items[next++];
      if (item !== undefined) await work(item, stop.signal);
    }
  }
  const workers = Array.from({ length: Math.min(limit, items.length) }, () =>
    worker().catch((error: unknown) => {
      // Later failures are the stop's own doing.
      if (!stop.signal.aborted) stop.abort(error);
    }),
  );
  try {
    await Promise.all(workers);
  } finally {
    stop.release();
  }
  stop.signal.throwIfAborted();
}
