import { type ArchiveEntry, contentOf, sortEntries } from "./archive-entry.ts";

/** 2.0: deflate. */
const neededVersion = 20;
/** The high byte means that the attributes are those of Unix. */
const madeBy = (3 << 8) | neededVersion;
const utf8Names = 1 << 11;
const deflate = 8;

/** Returns a ZIP archive of the files among the entries, for systems whose users expect one. Names are UTF-8. */
export function writeZip(entries: readonly ArchiveEntry[], date: Date): Uint8Array<ArrayBuffer> {
  const files: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const entry of sortEntries(entries)) {
    if (entry.type !== "file") continue;
    const content = new Uint8Array(contentOf(entry));
    const packed = Bun.deflateSync(content, { level: 9, library: "libdeflate" });
    const name = new TextEncoder().encode(entry.path);
    const common = [
      u16(neededVersion, utf8Names, deflate, ...dosTime(date)),
      u32(Bun.hash.crc32(content), packed.byteLength, content.byteLength),
      u16(name.byteLength, 0),
    ];
    const file = Buffer.concat([u32(0x04034b50), ...common, name, packed]);
    const attributes = Buffer.concat([u16(0, 0, 0), u32((0o100000 | entry.mode) * 0x10000, offset)]);
    directory.push(u32(0x02014b50), u16(madeBy), ...common, attributes, name);
    files.push(file);
    offset += file.byteLength;
  }
  const index = Buffer.concat(directory);
  const end = Buffer.concat([
    u32(0x06054b50),
    u16(0, 0, files.length, files.length),
    u32(index.byteLength, offset),
    u16(0),
  ]);
  return new Uint8Array(Buffer.concat([...files, index, end]));
}

/** Returns time and date as in MS-DOS: in steps of two seconds, without a time zone, not before 1980. */
function dosTime(date: Date): [time: number, date: number] {
  const years = date.getUTCFullYear() - 1980;
  if (years < 0 || years > 127) throw new Error(`a ZIP archive has no ${date.toISOString()}`);
  return [
    (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1),
    (years << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate(),
  ];
}

function u16(...values: number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(values.length * 2));
  for (const [index, value] of values.entries()) view.setUint16(index * 2, value, true);
  return new Uint8Array(view.buffer);
}

function u32(...values: number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(values.length * 4));
  for (const [index, value] of values.entries()) view.setUint32(index * 4, value, true);
  return new Uint8Array(view.buffer);
}
