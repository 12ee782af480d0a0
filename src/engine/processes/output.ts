import { isAscii } from "node:buffer";
import type { WireBytes } from "../../service/wire/operation.ts";

/** Encodes bytes as `ascii` if all of them are; else as `base64`, which every client decodes. */
export function encodeBytes(bytes: Uint8Array): { value: string; encoding: "ascii" | "base64" } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isAscii(buffer)
    ? { value: buffer.toString("latin1"), encoding: "ascii" }
    : { value: buffer.toString("base64"), encoding: "base64" };
}

/** Maximum bytes of one stream that are held. Longer output is only in the operation's events. */
const maxHeldBytes = 256 * 1024;

/**
 * One output stream of a command. Passes chunks on as they arrive, but never splits a UTF-8 character; holds short output for the
 * final record; drops output over the limit.
 */
export class CapturedStream {
  readonly #limit: number;
  readonly #deliver: (chunk: Uint8Array) => void;
  #held: Uint8Array[] = [];
  /** The first bytes of a character whose rest has not arrived. */
  #pending: Uint8Array = new Uint8Array();
  #keptBytes = 0;
  #droppedBytes = 0;

  constructor(limit: number, deliver: (chunk: Uint8Array) => void) {
    this.#limit = limit;
    this.#deliver = deliver;
  }

  write(chunk: Uint8Array): void {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    const whole = bytes.length - unfinishedBytes(bytes);
    this.#pending = bytes.slice(whole);
    this.#keep(bytes.subarray(0, whole));
  }

  /** Passes on what was held back: it was not the beginning of a character. */
  end(): void {
    this.#keep(this.#pending);
    this.#pending = new Uint8Array();
  }

  get emittedBytes(): number {
    return this.#keptBytes;
  }

  get droppedBytes(): number {
    return this.#droppedBytes;
  }

  /** True if all of the output is held here, not only in the events. */
  get isHeld(): boolean {
    return this.#keptBytes <= maxHeldBytes;
  }

  /** Returns empty output if it is not held. */
  toWire(): WireBytes {
    return { ...encodeBytes(Buffer.concat(this.#held)), truncated: this.#droppedBytes > 0 };
  }

  #keep(bytes: Uint8Array): void {
    const room = this.#droppedBytes > 0 ? 0 : this.#limit - this.#keptBytes;
    const fits = bytes.length <= room;
    const kept = fits ? bytes : bytes.subarray(0, room - unfinishedBytes(bytes.subarray(0, room)));
    this.#droppedBytes += bytes.length - kept.length;
    if (kept.length === 0) return;
    this.#keptBytes += kept.length;
    // A copy, since the reader may reuse the memory.
    const copy = kept.slice();
    if (this.isHeld) this.#held.push(copy);
    else this.#held = [];
    this.#deliver(copy);
  }
}

/** Returns the number of bytes, 0 to 3, at the end that begin an incomplete UTF-8 character. */
function unfinishedBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < sequenceLength(byte) ? back : 0;
  }
  return 0;
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf8) return 1;
  return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
}
