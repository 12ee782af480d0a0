import { BoughError, messageOf } from "../errors.ts";

/** What went wrong, in words for the client; a full disk is named by the directory that it holds. */
export function describeFault(error: unknown, directory: string): string {
  if (isDiskFull(error)) return `no space left on the disk that holds ${directory}`;
  if (error instanceof BoughError && error.hint !== undefined) return `${error.message}. ${error.hint}`;
  return messageOf(error);
}

/** Whether SQLite says that a database file is no database, or broken. */
export function isDamaged(error: unknown): boolean {
  return /^SQLITE_(NOTADB|CORRUPT)/.test(String((error as { code?: unknown } | null)?.code));
}

export function isDiskFull(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return (
    code === "ENOSPC" ||
    code === "EDQUOT" ||
    code === "SQLITE_FULL" ||
    /no space left on device/i.test(messageOf(error))
  );
}
