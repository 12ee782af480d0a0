/** Headers of tar archives: POSIX ustar with PAX records, and GNU's long names. Pure. */

export interface TarHeader {
  name: string;
  /** The type flag: `3` and `4` are devices, `6` is a pipe. */
  flag: string;
  /** Permission bits, 0 to 0o7777. */
  mode: number;
  uid: number;
  gid: number;
  size: number;
  /** Seconds since the epoch. Only whole seconds are written. */
  modified: number;
  linkName: string;
  /** A device's number. */
  major: number;
  minor: number;
}

/** Decodes names: as UTF-8, or as latin1 if no byte may be lost. */
export type DecodeText = (bytes: Uint8Array) => string;

export const blockBytes = 512;

export const maxNameBytes = 100;

/** The fields of a header to write. Names are bytes: they may not be UTF-8. */
export interface WrittenHeader extends Omit<TarHeader, "name" | "linkName" | "major" | "minor"> {
  name: Uint8Array;
  /** The target of a link. */
  target?: Uint8Array | undefined;
  device?: Pick<TarHeader, "major" | "minor"> | undefined;
}

/** Returns a POSIX ustar header. Numbers that don't fit are encoded as GNU does; throws for names that don't fit. */
export function writeHeader(header: WrittenHeader): Buffer<ArrayBuffer> {
  const { name, flag, target = new Uint8Array(), device } = header;
  if (name.byteLength > maxNameBytes || target.byteLength > maxNameBytes)
    throw new Error(`too long for a tar header: ${decode(name)}`);
  const bytes = Buffer.alloc(blockBytes);
  const number = (offset: number, length: number, value: number) => {
    const octal = value.toString(8);
    if (octal.length < length) {
      bytes.write(`${octal.padStart(length - 1, "0")}\0`, offset, "latin1");
      return;
    }
    // GNU: a big-endian number whose first bit is set.
    for (let at = length - 1, left = value; at > 0; at--, left = Math.floor(left / 256))
      bytes[offset + at] = left % 256;
    bytes[offset] = 0x80;
  };
  bytes.set(name, 0);
  number(100, 8, header.mode);
  number(108, 8, header.uid);
  number(116, 8, header.gid);
  number(124, 12, header.size);
  number(136, 12, header.modified);
  bytes.write(flag, 156, "latin1");
  bytes.set(target, 157);
  bytes.write("ustar\x0000", 257, "latin1");
  if (device !== undefined) {
    number(329, 8, device.major);
    number(337, 8, device.minor);
  }
  // The checksum is computed with its own field full of spaces.
  bytes.fill(" ", 148, 156);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}

/** Returns the number of bytes between content of this size and the next header. */
export function padding(size: number): number {
  return (blockBytes - (size % blockBytes)) % blockBytes;
}

export function isZeroBlock(block: Uint8Array): boolean {
  return block.every((byte) => byte === 0);
}

/** Returns `undefined` if the checksum does not match, since the block is not a header then. */
export function parseHeader(block: Uint8Array, text: DecodeText = decode): TarHeader | undefined {
  const sum = block.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0);
  if (sum !== numberAt(block, 148, 8)) return undefined;
  // GNU has other fields in place of POSIX's prefix.
  const prefix = decode(block.subarray(257, 263)) === "ustar" ? text(block.subarray(345, 500)) : "";
  const name = text(block.subarray(0, 100));
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    flag: String.fromCharCode(block[156] || 0x30),
    mode: numberAt(block, 100, 8) & 0o7777,
    uid: numberAt(block, 108, 8),
    gid: numberAt(block, 116, 8),
    size: numberAt(block, 124, 12),
    modified: numberAt(block, 136, 12),
    linkName: text(block.subarray(157, 257)),
    major: numberAt(block, 329, 8),
    minor: numberAt(block, 337, 8),
  };
}

/** The PAX keys that bough reads; an archive may have any number of others. */
const knownKeys = new Set([
  ...["path", "linkpath", "uid", "gid", "size", "mtime"],
  ...["GNU.sparse.major", "GNU.sparse.minor", "GNU.sparse.name", "GNU.sparse.realsize", "GNU.sparse.size"],
  "GNU.sparse.map",
]);

/**
 * Parses PAX records: `<length> <key>=<value>\n`, where the length in bytes is that of the whole record. Leaves out keys that
 * bough does not read.
 */
export function parsePaxRecords(bytes: Uint8Array, text: DecodeText = decode): Map<string, string> {
  const records = new Map<string, string>();
  const map: string[] = [];
  for (let at = 0; at < bytes.byteLength; ) {
    const space = bytes.indexOf(0x20, at);
    const length = space < 0 ? Number.NaN : Number(decode(bytes.subarray(at, space)));
    if (!Number.isInteger(length) || length <= space - at || at + length > bytes.byteLength) break;
    const record = bytes.subarray(space + 1, at + length - 1);
    const separator = record.indexOf(0x3d);
    const key = decode(record.subarray(0, Math.max(separator, 0)));
    const value = record.subarray(separator + 1);
    if (knownKeys.has(key)) records.set(key, text(value));
    // Format 0.0 of sparse files has a record for each number of the map.
    else if (key === "GNU.sparse.offset" || key === "GNU.sparse.numbytes") map.push(text(value));
    else if (key.startsWith(attributePrefix)) records.set(key, decodeBytes(value));
    at += length;
  }
  if (map.length > 0) records.set("GNU.sparse.map", map.join(","));
  return records;
}

/** Returns the extended attributes among PAX records. Their values are bytes, decoded as latin1. */
export function attributesIn(records: ReadonlyMap<string, string>): { name: string; value: Buffer }[] {
  const found = [...records].filter(([key]) => key.startsWith(attributePrefix));
  return found.map(([key, value]) => ({
    name: key.slice(attributePrefix.length),
    value: Buffer.from(value, "latin1"),
  }));
}

const attributePrefix = "SCHILY.xattr.";

export function withPaxRecords(header: TarHeader, records: ReadonlyMap<string, string>): TarHeader {
  // An empty value undoes that of a global header (POSIX, pax, "pax Extended Header").
  const text = (key: string) => records.get(key) || undefined;
  const number = (key: string, otherwise: number) => {
    const value = Number(text(key) ?? otherwise);
    return Number.isFinite(value) ? value : otherwise;
  };
  return {
    ...header,
    name: text("GNU.sparse.name") ?? text("path") ?? header.name,
    linkName: text("linkpath") ?? header.linkName,
    uid: number("uid", header.uid),
    gid: number("gid", header.gid),
    size: number("size", header.size),
    modified: number("mtime", header.modified),
  };
}

/** Decodes the text up to its first NUL. */
export function decode(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
}

/** Decodes bytes as latin1, up to the first NUL. */
export function decodeName(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return decodeBytes(end < 0 ? bytes : bytes.subarray(0, end));
}

function decodeBytes({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
}

/** Parses octal text, or GNU's big-endian number if the first bit is set: one in two's complement if the first byte is 0xff. */
export function numberAt(block: Uint8Array, offset: number, length: number): number {
  const field = block.subarray(offset, offset + length);
  const [first = 0, ...others] = field;
  if (first === 0xff) return -1 - others.reduce((value, byte) => value * 256 + (0xff - byte), 0);
  if ((first & 0x80) !== 0) return others.reduce((value, byte) => value * 256 + byte, first & 0x7f);
  const value = Number.parseInt(decode(field).trim() || "0", 8);
  return Number.isNaN(value) ? 0 : value;
}

/**
 * Returns the header of a file in an archive that is sent while it is written; with `link`, that of a hard link to an earlier
 * entry. Names may have any length (GNU's long names).
 */
export function fileHeader(
  { path, link, size, ...owned }: { path: string; link?: string | undefined; size: number } & FileAttributes,
  date: Date,
): Uint8Array<ArrayBuffer> {
  const file = { name: cut(path), ...owned, modified: epochSeconds(date) };
  return new Uint8Array(
    Buffer.concat([
      longName("L", path, date),
      longName("K", link ?? "", date),
      link === undefined
        ? writeHeader({ ...file, flag: "0", size })
        : writeHeader({ ...file, flag: "1", size: 0, target: cut(link) }),
    ]),
  );
}

interface FileAttributes {
  mode: number;
  uid: number;
  gid: number;
}

/** Returns GNU's entry with a long name; nothing for a name that fits in a header. */
function longName(flag: "L" | "K", name: string, date: Date): Uint8Array {
  const bytes = Buffer.from(`${name}\0`);
  const size = bytes.byteLength;
  if (size <= maxNameBytes + 1) return bytes.subarray(0, 0);
  const owned = { mode: 0o644, uid: 0, gid: 0 };
  const header = { name: Buffer.from("././@LongLink"), flag, ...owned, size, modified: epochSeconds(date) };
  return Buffer.concat([writeHeader(header), bytes, new Uint8Array(padding(size))]);
}

/** Truncates a name to whole characters that fit in a header: a reader already has the long name. */
function cut(name: string): Uint8Array {
  const bytes = new Uint8Array(maxNameBytes);
  return bytes.subarray(0, new TextEncoder().encodeInto(name, bytes).written);
}

/** The number of bytes after the last entry that end an archive. */
export const endBytes = 2 * blockBytes;

export function epochSeconds(date: Date): number {
  return Math.max(0, Math.floor(date.getTime() / 1000));
}
