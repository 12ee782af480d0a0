/** Reads a body of unknown size: counts bytes after decompression, and stops when they exceed the limit. */

import { cancelOnAbort } from "../../streams.ts";

/** The size limit of a JSON response: two output streams of the limit that a build asks for, in base64, and more. */
export const maxJsonBytes = 64 * 1024 * 1024;
/** The size limit of a file that is read whole, such as an image's `/etc/passwd`. */
export const maxFileBytes = 4 * 1024 * 1024;
/** The number of bytes that are read of an error's body. */
const maxErrorBytes = 64 * 1024;

type Body = ReadableStream<Uint8Array> | null;

/** Returns the whole body; `undefined` if it has more than `maxBytes`. */
export async function readWhole(
  body: Body,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const { bytes, isWhole } = await read(body, maxBytes, signal);
  return isWhole ? bytes : undefined;
}

/** Returns the first `maxErrorBytes` of a body, without waiting for the rest. */
export async function readBeginning(body: Body, signal: AbortSignal): Promise<Uint8Array> {
  const { bytes } = await read(body, maxErrorBytes, signal);
  return bytes.subarray(0, maxErrorBytes);
}

async function read(
  body: Body,
  maxBytes: number,
  signal: AbortSignal,
): Promise<{ bytes: Uint8Array; isWhole: boolean }> {
  if (body === null) return { bytes: new Uint8Array(), isWhole: true };
  const reader = body.getReader();
  using _ = cancelOnAbort(reader, signal);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    signal.throwIfAborted();
    if (done) return { bytes: join(chunks), isWhole: true };
    chunks.push(value);
    size += value.byteLength;
    if (size > maxBytes) {
      reader.cancel().catch(() => undefined);
      return { bytes: join(chunks), isWhole: false };
    }
  }
}

/** Joins chunks. Most responses arrive in one, which is returned as it is. */
function join(chunks: readonly Uint8Array[]): Uint8Array {
  const [only, ...others] = chunks;
  return only !== undefined && others.length === 0 ? only : Buffer.concat(chunks);
}

/** The limit of lists, objects and their members in JSON of an untrusted server: each takes far more memory than its characters. */
const maxMembers = 4_000_000;
const maxDepth = 256;
/** The length up to which a text is harmless, whatever it contains. */
const harmlessCharacters = 64 * 1024;

/** Thrown for JSON that would take too much memory. */
export class ExcessiveJsonError extends Error {
  override readonly name = "ExcessiveJsonError";
}

/**
 * Parses JSON; throws an ExcessiveJsonError for text that is nested too deep or has too many members. An integer that is too large
 * for a number becomes its digits: it is an id.
 */
export function parseBoundedJson(text: string): unknown {
  if (text.length > harmlessCharacters) checkStructure(text);
  return mayHaveLargeIntegers.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text);
}

/** Matches text that may have integers of at least 16 digits. Such digits in a string match as well, which costs only time. */
const mayHaveLargeIntegers = /(^|[\s:,[])-?\d{16,}/;

function keepDigits(_: string, value: unknown, { source }: { source?: string } = {}): unknown {
  const isLarge = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isLarge && source !== undefined && /^-?\d+$/.test(source) ? source : value;
}

function checkStructure(text: string): void {
  let depth = 0;
  let members = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at);
        break;
      case openBracket:
      case openBrace:
        depth++;
        members++;
        if (depth > maxDepth) throw new ExcessiveJsonError(`JSON that is nested more than ${maxDepth} deep`);
        break;
      case closeBracket:
      case closeBrace:
        depth--;
        break;
      case comma:
        members++;
        break;
    }
    if (members > maxMembers) throw new ExcessiveJsonError(`JSON of more than ${maxMembers} values`);
  }
}

/** Returns the index at which the string that begins at `start` ends, or at which the text ends. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === backslash) backslashes++;
    if (backslashes % 2 === 0) return at;
  }
  return text.length;
}

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
