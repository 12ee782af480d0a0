/** Deduplicated upload: each content once, and only where the service does not have it. */
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { childOf } from "./abort.ts";
import { forEachAtOnce } from "./at-once.ts";
import type { Body } from "./exchange.ts";
import { asRecord, asText } from "./json.ts";
import { changed, guardFile, readChecked } from "./local-file.ts";
import type { LocalFile, UploadProgress } from "./service.ts";
import type { Transport } from "./transport.ts";

/** The local memory of what a service has: file ids by SHA-256. */
export interface KnownFiles {
  get(sha256: string): string | undefined;
  set(sha256: string, uuid: string): void;
}

export interface FilesOptions {
  transport: Transport;
  clock: Clock;
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
const guardEveryMilliseconds = 1000;
/** The question saves work, so it is not worth any: whatever is no clear answer means that the file is sent. */
const noAnswer = [400, 403, 404, 405, 406, 410, 500, 501, 502, 503, 504];

export function createFiles({ transport, clock, signal, knownFiles }: FilesOptions): Files {
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
    const bytes = await readChecked(file);
    const timeoutMilliseconds = smallUploadTimeoutMilliseconds;
    return checked(file, await postFile(transport, () => bytes, { signal: stop, timeoutMilliseconds })).uuid;
  }

  async function sendLarge(file: LocalFile, parent: AbortSignal): Promise<string> {
    const guard = guardFile(file);
    const stop = childOf(parent);
    // A file that shrinks leaves a request that waits for ever for bytes that it has promised.
    const watch = async () => {
      for (;;) {
        await clock.sleep(guardEveryMilliseconds, stop.signal);
        guard.check();
      }
    };
    watch().catch((error: unknown) => stop.abort(error));
    try {
      const body = () => Bun.file(file.absolutePath);
      const stored = await postFile(transport, body, { signal: stop.signal, timeoutMilliseconds: 0 });
      if (stored.sha256 === undefined) await guard.checkContent();
      return checked(file, stored).uuid;
    } finally {
      stop.abort(undefined);
      stop.release();
    }
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
  return { uuid, sha256: asText(record?.sha256)?.toLowerCase() };
}

function checked(file: LocalFile, stored: StoredFile): StoredFile {
  if (stored.sha256 !== undefined && stored.sha256 !== file.sha256) throw changed(file);
  return stored;
}
