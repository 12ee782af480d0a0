/** Reads JSON of a server, in which any field may be missing or of another type. */

export type JsonRecord = Record<string, unknown>;

export function asRecord(value: unknown): JsonRecord | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonRecord)
    : undefined;
}

/** Returns `undefined` if the text is not the JSON of an object. */
export function parseRecord(text: string | Uint8Array): JsonRecord | undefined {
  try {
    return asRecord(JSON.parse(typeof text === "string" ? text : Buffer.from(text).toString()));
  } catch {
    return undefined;
  }
}

/** Returns a string that is not empty. */
export function asText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns a safe integer, given as a number or as text. */
export function asInteger(value: unknown): number | undefined {
  if (typeof value === "string" && /^-?\d{1,9}$/.test(value)) return Number(value);
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

export function asNumber(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

const maxIdCharacters = 256;

/**
 * Returns an id of the service, which goes into paths, log lines and this machine's databases, and into command lines that bough
 * suggests. So it contains no character that a shell replaces, does not look like a long option, and is not `.` or `..`, which are
 * dropped from URLs.
 */
export function asId(value: unknown): string | undefined {
  const text = asText(value);
  return text !== undefined && text.length <= maxIdCharacters && /^(?!\.{1,2}$|--)[\w.~:@/+=,%-]+$/.test(text)
    ? text
    : undefined;
}
