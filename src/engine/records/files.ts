import type { Database } from "bun:sqlite";
import { closeSync, fdatasync, lstatSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { inTransaction } from "../../database.ts";
import { BoughError } from "../../errors.ts";
import { createPace } from "../../pace.ts";
import type { FileRecord } from "../../service/wire/file.ts";
import { isSha256 } from "../../sha256.ts";
import { cancelOnAbort } from "../../streams.ts";
import { errorCode } from "../../system-error.ts";
import type { ListFilter } from "../http/fields.ts";
import { RequestError } from "../http/responses.ts";
import type { Layout } from "../layout.ts";
import { hashStored } from "./stored-content.ts";

interface FileRow {
  uuid: string;
  sha256: string;
  size: number;
  created_at: number;
  updated_at: number;
}

export function filePath(layout: Layout, sha256: string): string {
  // An edited row must not lead to another path.
  if (!isSha256(sha256)) throw new Error(`${JSON.stringify(sha256)} is not a SHA-256`);
  return join(layout.files, sha256.slice(0, 2), sha256);
}

/**
 * Stores a stream under its SHA-256, which is computed while it is written. The bytes are on disk before the file gets its name,
 * so a stored file is reliable. They replace an existing file, which may be damaged.
 *
 * @param options.signal the request's signal, since its body may stop arriving
 * @param options.inspect called with the SHA-256 before the file is stored; if it throws, nothing is stored
 */
export async function storeFile(
  database: Database,
  layout: Layout,
  body: ReadableStream<Uint8Array> | null,
  now: () => number,
  { signal, inspect }: { signal?: AbortSignal; inspect?: ((sha256: string) => void) | undefined } = {},
): Promise<FileRecord> {
  const temporary = join(layout.scratch, crypto.randomUUID());
  try {
    const { sha256, size } = await writeHashed(temporary, body, signal);
    inspect?.(sha256);
    // The file and its record appear under one lock, which the removal of orphaned files also takes.
    inTransaction(database, () => {
      moveIntoPlace(temporary, filePath(layout, sha256));
      database
        .query<undefined, [string, string, number, number, number]>(
          `INSERT INTO files (sha256, uuid, size, created_at, updated_at) VALUES (?, ?, ?, ?, ?)
           ON CONFLICT (sha256) DO UPDATE SET size = excluded.size, updated_at = excluded.updated_at`,
        )
        .run(sha256, crypto.randomUUID(), size, now(), now());
    });
    const record = findFile(database, layout, "sha256", sha256);
    if (record === undefined)
      throw new RequestError(409, "the file was removed while it was being stored; send it again");
    return record;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Thrown for stored files that are damaged. A client that reads "no longer" in its message uploads them again. */
export class DamagedFilesError extends BoughError {
  /** The SHA-256s of the files as they were uploaded. */
  readonly damaged: ReadonlySet<string>;

  constructor(files: readonly { sha256: string; destination: string }[]) {
    const many =
      files.length === 1 ? "a stored file no longer has" : `${files.length} stored files no longer have`;
    super(`${many} the bytes that were uploaded (for ${files[0]?.destination}): upload again`);
    this.damaged = new Set(files.map(({ sha256 }) => sha256));
  }
}

/**
 * Removes the files whose bytes don't match their SHA-256, as if they had never been uploaded. A file that was uploaded again meanwhile
 * stays.
 */
export function dropDamagedFiles(database: Database, layout: Layout, hashes: Iterable<string>): void {
  for (const sha256 of hashes) {
    inTransaction(database, () => {
      const path = filePath(layout, sha256);
      if (hashStored(path) === sha256) return;
      database.query<undefined, [string]>("DELETE FROM files WHERE sha256 = ?").run(sha256);
      rmSync(path, { recursive: true, force: true });
    });
  }
}

function moveIntoPlace(temporary: string, path: string): void {
  const folder = dirname(path);
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  // A link in the folder's place could lead elsewhere.
  if (stats !== undefined && !stats.isDirectory()) rmSync(folder);
  if (!stats?.isDirectory()) mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    renameSync(temporary, path);
  } catch (error) {
    if (errorCode(error) !== "EISDIR") throw error;
    rmSync(path, { recursive: true });
    renameSync(temporary, path);
  }
}

/** Finds a stored file. Returns `undefined` for one whose bytes are missing, or were truncated by a crash of the machine. */
export function findFile(
  database: Database,
  layout: Layout,
  column: "sha256" | "uuid",
  value: string,
): FileRecord | undefined {
  const row = database
    .query<FileRow, [string]>(`SELECT * FROM files WHERE ${column} = ?`)
    .get(value.toLowerCase());
  if (row === null || !isSha256(row.sha256)) return undefined;
  const stats = lstatSync(filePath(layout, row.sha256), { throwIfNoEntry: false });
  return stats?.isFile() && stats.size === row.size ? toRecord(row) : undefined;
}

interface FileFilter extends ListFilter {
  sha256: string | undefined;
}

/** Lists stored files, the newest first. */
export function listFiles(
  database: Database,
  { sha256, since, until, limit, offset }: FileFilter,
): FileRecord[] {
  return database
    .query<FileRow, [string | null, string | null, number, number, number, number]>(
      `SELECT * FROM files WHERE (? IS NULL OR sha256 = ?) AND created_at BETWEEN ? AND ?
       ORDER BY created_at DESC, rowid DESC LIMIT ? OFFSET ?`,
    )
    .all(sha256 ?? null, sha256 ?? null, since ?? 0, until ?? Number.MAX_SAFE_INTEGER, limit, offset)
    .map(toRecord);
}

/** Writes and hashes a stream. Uses no FileHandle: one left open by an aborted request is an uncaught error at its collection. */
async function writeHashed(
  path: string,
  body: ReadableStream<Uint8Array> | null,
  signal: AbortSignal | undefined,
): Promise<{ sha256: string; size: number }> {
  const hasher = new Bun.CryptoHasher("sha256");
  let size = 0;
  const reader = body?.getReader();
  using _ = reader && signal && cancelOnAbort(reader, signal);
  const descriptor = openSync(path, "wx", 0o600);
  // A sender in this process never waits for a socket: without pauses it would block everything else.
  const pace = createPace(undefined);
  try {
    for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read()) {
      const chunk = next.value;
      hasher.update(chunk);
      size += chunk.byteLength;
      for (let written = 0; written < chunk.byteLength; ) written += writeSync(descriptor, chunk, written);
      await pace.step();
    }
    signal?.throwIfAborted();
    await sync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  return { sha256: hasher.digest("hex"), size };
}

function sync(descriptor: number): Promise<void> {
  return new Promise((resolve, reject) =>
    fdatasync(descriptor, (error) => (error ? reject(error) : resolve())),
  );
}

function toRecord(row: FileRow): FileRecord {
  return {
    uuid: row.uuid,
    sha256: row.sha256,
    size: row.size,
    created_at: new Date(row.created_at).toISOString(),
    updated_at: new Date(row.updated_at).toISOString(),
  };
}
