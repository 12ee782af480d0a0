/**
 * Reads a tar stream entry by entry without keeping a file's bytes: PAX and GNU headers, long names, extended
 * attributes, GNU's sparse files (format 1.0).
 */

export interface TarEntry {
  /** The name, unchanged from the archive. */
  name: string;
  type: "file" | "directory" | "symlink" | "hardlink" | "character-device" | "block-device" | "pipe";
  /** Permission bits, 0 to 0o7777. */
  mode: number;
  uid: number;
  gid: number;
  /** The modification time in whole seconds since the epoch. */
  modified: number;
  /** Size and digest of a file's contents as a reader sees them, including holes. */
  size: number;
  sha256: string;
  /** The first bytes of a file. */
  beginning: Uint8Array;
  /** The target of a link. */
  target: string;
  /** The numbers of a device: `major,minor`. */
  device: string;
  /** Values of extended attributes in base64, by name. */
  attributes: ReadonlyMap<string, string>;
}

const types: Record<string, TarEntry["type"]> = {
  "0": "file",
  "\0": "file",
  "1": "hardlink",
  "2": "symlink",
  "3": "character-device",
  "4": "block-device",
  "5": "directory",
  "6": "pipe",
};

const block = 512;
const beginningBytes = 400;

export async function* readTar(stream: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const input = new ByteReader(stream);
  let extended = new Map<string, Buffer>();
  let longName: string | undefined;
  let longTarget: string | undefined;
  for (;;) {
    const header = await input.take(block);
    if (header.every((byte) => byte === 0)) break;
    const flag = String.fromCharCode(header[156] ?? 0);
    const size = Number(extended.get("size")?.toString() ?? readNumber(header, 124, 12));
    if (flag === "x" || flag === "L" || flag === "K") {
      const body = await input.take(size);
      await input.take(padding(size));
      if (flag === "x") extended = parseExtendedHeader(body);
      else if (flag === "L") longName = cString(body, 0, size);
      else longTarget = cString(body, 0, size);
      continue;
    }
    const type = types[flag];
    if (type === undefined) throw new Error(`tar entry of an unknown type: ${JSON.stringify(flag)}`);
    const text = (name: string) => extended.get(name)?.toString();
    const content = type === "file" ? await digestFile(input, size, extended) : emptyContent;
    await input.take(padding(type === "file" ? size : 0));
    const prefix = cString(header, 345, 155);
    const shortName = cString(header, 0, 100);
    yield {
      name:
        text("GNU.sparse.name") ??
        text("path") ??
        longName ??
        (prefix === "" ? shortName : `${prefix}/${shortName}`),
      type,
      mode: readNumber(header, 100, 8) & 0o7777,
      uid: Number(text("uid") ?? readNumber(header, 108, 8)),
      gid: Number(text("gid") ?? readNumber(header, 116, 8)),
      modified: Math.floor(Number(text("mtime") ?? readNumber(header, 136, 12))),
      ...content,
      target: text("linkpath") ?? longTarget ?? cString(header, 157, 100),
      device: `${readNumber(header, 329, 8)},${readNumber(header, 337, 8)}`,
      attributes: attributesOf(extended),
    };
    extended = new Map();
    longName = undefined;
    longTarget = undefined;
  }
  await input.drain();
}

interface Content {
  size: number;
  sha256: string;
  beginning: Uint8Array;
}

const emptyContent: Content = {
  size: 0,
  sha256: new Bun.CryptoHasher("sha256").digest("hex"),
  beginning: new Uint8Array(),
};

async function digestFile(
  input: ByteReader,
  stored: number,
  extended: ReadonlyMap<string, Buffer>,
): Promise<Content> {
  const hasher = new Bun.CryptoHasher("sha256");
  const beginning: Uint8Array[] = [];
  let size = 0;
  const feed = (chunk: Uint8Array) => {
    hasher.update(chunk);
    if (size < beginningBytes) beginning.push(chunk.slice(0, beginningBytes - size));
    size += chunk.byteLength;
  };
  if (extended.get("GNU.sparse.major")?.toString() === "1") {
    const realSize = Number(extended.get("GNU.sparse.realsize")?.toString());
    for (const [offset, length] of await readSparseMap(input)) {
      feedZeros(feed, offset - size);
      await input.each(length, feed);
    }
    feedZeros(feed, realSize - size);
  } else await input.each(stored, feed);
  return { size, sha256: hasher.digest("hex"), beginning: Buffer.concat(beginning) };
}

/** Reads the map of a sparse file: decimal lines (the number of pieces, then offset and length of each) in whole blocks. */
async function readSparseMap(input: ByteReader): Promise<[number, number][]> {
  let read = 0;
  const number = async () => {
    let digits = "";
    for (;;) {
      const [byte = 0] = await input.take(1);
      read += 1;
      if (byte === 10) return Number(digits);
      digits += String.fromCharCode(byte);
    }
  };
  const map: [number, number][] = [];
  for (let left = await number(); left > 0; left--) map.push([await number(), await number()]);
  await input.take(padding(read));
  return map;
}

function feedZeros(feed: (chunk: Uint8Array) => void, count: number): void {
  const zeros = new Uint8Array(64 * 1024);
  for (let left = count; left > 0; left -= zeros.byteLength)
    feed(zeros.subarray(0, Math.min(left, zeros.byteLength)));
}

/** Records of `<length> <name>=<value>\n`. */
function parseExtendedHeader(body: Buffer): Map<string, Buffer> {
  const records = new Map<string, Buffer>();
  for (let start = 0; start < body.byteLength; ) {
    const space = body.indexOf(32, start);
    const end = start + Number(body.toString("latin1", start, space));
    const equals = body.indexOf(61, space);
    records.set(body.toString("utf8", space + 1, equals), body.subarray(equals + 1, end - 1));
    start = end;
  }
  return records;
}

function attributesOf(extended: ReadonlyMap<string, Buffer>): Map<string, string> {
  const prefix = "SCHILY.xattr.";
  return new Map(
    [...extended]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]): [string, string] => [name.slice(prefix.length), value.toString("base64")]),
  );
}

/** Reads a number in octal, or in base 256 if it is large. */
function readNumber(header: Buffer, offset: number, length: number): number {
  if (((header[offset] ?? 0) & 0x80) !== 0) {
    return header.subarray(offset + 1, offset + length).reduce((number, byte) => number * 256 + byte, 0);
  }
  return Number.parseInt(cString(header, offset, length).trim() || "0", 8);
}

function cString(bytes: Buffer, offset: number, length: number): string {
  const field = bytes.subarray(offset, offset + length);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end === -1 ? field.byteLength : end);
}

function padding(size: number): number {
  return (block - (size % block)) % block;
}

class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  async take(count: number): Promise<Buffer> {
    if (this.#rest.byteLength >= count) {
      const taken = this.#rest.subarray(0, count);
      this.#rest = this.#rest.subarray(count);
      return Buffer.from(taken);
    }
    const parts: Uint8Array[] = [];
    await this.each(count, (part) => parts.push(part));
    return Buffer.concat(parts);
  }

  /** Passes on the next `count` bytes, in pieces as they arrive. */
  async each(count: number, use: (part: Uint8Array) => void): Promise<void> {
    for (let left = count; left > 0; ) {
      if (this.#rest.byteLength === 0) {
        const { done, value } = await this.#chunks.next();
        if (done === true) throw new Error(`the archive ends ${left} bytes too early`);
        this.#rest = value;
        continue;
      }
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.byteLength);
      left -= part.byteLength;
      use(part);
    }
  }

  async drain(): Promise<void> {
    this.#rest = new Uint8Array();
    while ((await this.#chunks.next()).done !== true);
  }
}
