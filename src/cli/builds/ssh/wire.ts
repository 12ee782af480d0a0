/** The data types of the SSH protocol (RFC 4251, section 5), and the messages of an agent, without I/O. */

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function text(value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([uint32(bytes.length), bytes]);
}

/** Returns a positive number of any size as an `mpint`. */
export function mpint(value: Uint8Array): Buffer {
  const first = value.findIndex((byte) => byte !== 0);
  const bytes = first < 0 ? Buffer.alloc(0) : Buffer.from(value.subarray(first));
  return text((bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes);
}

/** Reads such data one after the other. Throws a `RangeError` if there is less. */
export class WireReader {
  readonly #bytes: Buffer;
  #position = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  uint32(): number {
    return this.take(4).readUInt32BE();
  }

  text(): Buffer {
    return this.take(this.uint32());
  }

  take(length: number): Buffer {
    const end = this.#position + length;
    if (end > this.#bytes.length) throw new RangeError("the data ends too early");
    const taken = this.#bytes.subarray(this.#position, end);
    this.#position = end;
    return taken;
  }
}
