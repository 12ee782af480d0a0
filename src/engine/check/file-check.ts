import type { Database } from "bun:sqlite";
import { lstatSync } from "node:fs";
import { isSha256 } from "../../sha256.ts";
import type { Layout } from "../layout.ts";
import { filePath } from "../records/files.ts";
import { hashInPieces } from "../records/stored-content.ts";
import { add, type CheckRun } from "./report.ts";

interface FileRow {
  sha256: string;
  size: number;
}

export function listFiles(database: Database): FileRow[] {
  return database.query<FileRow, []>("SELECT sha256, size FROM files").all();
}

export function findFileProblem(layout: Layout, { sha256, size }: FileRow): string | undefined {
  if (!isSha256(sha256)) return "its record has an invalid SHA-256";
  const stats = lstatSync(filePath(layout, sha256), { throwIfNoEntry: false });
  if (stats === undefined) return "it is gone";
  if (!stats.isFile()) return "it is not a regular file";
  return stats.size === size ? undefined : `it has ${stats.size} bytes instead of ${size}`;
}

export async function checkFiles(run: CheckRun): Promise<void> {
  const { database, layout, report } = run;
  const isRecorded = database.query<{ found: number }, [string]>(
    "SELECT 1 AS found FROM files WHERE sha256 = ?",
  );
  for (const file of listFiles(database)) {
    report.files++;
    const problem =
      findFileProblem(layout, file) ??
      (await findByteProblem(run, filePath(layout, file.sha256), file.sha256));
    // The file may have been pruned meanwhile.
    if (problem !== undefined && isRecorded.get(file.sha256) !== null)
      add(run, { kind: "file", name: file.sha256, problem });
  }
}

export async function findByteProblem(
  { pace, report }: CheckRun,
  path: string,
  sha256: string,
): Promise<string | undefined> {
  const pieces = hashInPieces(path);
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true && value === undefined) return "it cannot be read";
    if (done === true) return value === sha256 ? undefined : "its bytes have changed";
    report.bytes += value;
    const pause = pace.step();
    if (pause !== undefined) await pause;
  }
}
