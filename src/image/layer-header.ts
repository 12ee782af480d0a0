import { blockBytes, padding } from "./tar-header.ts";

/** An entry of a layer's archive. Names are bytes: not all of them are UTF-8. */
export interface LayerEntry {
  /** Relative to the root; a directory's ends with a slash. */
  name: Uint8Array;
  /** tar's type flag. */
  flag: "0" | "1" | "2" | "3" | "4" | "5" | "6";
  /** Permission bits. */
  mode: number;
  uid: number;
  gid: number;
  /** Bytes of the content that follows. */
  size: number;
  /** Whole seconds since the epoch, as Docker's layers have them. */
  modified: number;
  /** What a link leads to. */
  target?: Uint8Array;
  device?: { major: number; minor: number };
  attributes?: readonly { name: string; value: Uint8Array }[];
}

/** POSIX ustar; what has no room in it goes before it as PAX records, extended attributes as `SCHILY.xattr.<name>`. */
export function layerHeader(entry: LayerEntry): Uint8Array {
  const records = paxRecords(entry);
  const header = ustarHeader(entry);
  if (records.byteLength === 0) return header;
  const name = Buffer.from("PaxHeaders/entry");
  const size = records.byteLength;
  const pax = ustarHeader({ name, flag: "x", mode: 0o644, uid: 0, gid: 0, size, modified: 0 });
  return Buffer.concat([pax, records, new Uint8Array(padding(size)), header]);
}

const maxNameBytes = 100;
/** The largest numbers of fields with 8 and 12 bytes, which end with a NUL. */
const maxNumber = { 8: 0o7777777, 12: 0o77777777777 } as const;

function paxRecords(entry: LayerEntry): Uint8Array {
  const { name, target, uid, gid, size, modified, attributes = [] } = entry;
  const records: Uint8Array[] = [];
  const add = (key: string, value: Uint8Array | string) => records.push(paxRecord(key, value));
  if (name.byteLength > maxNameBytes) add("path", name);
  if (target !== undefined && target.byteLength > maxNameBytes) add("linkpath", target);
  if (uid > maxNumber[8]) add("uid", String(uid));
  if (gid > maxNumber[8]) add("gid", String(gid));
  if (size > maxNumber[12]) add("size", String(size));
  if (modified < 0 || modified > maxNumber[12]) add("mtime", String(modified));
  for (const { name, value } of [...attributes].sort((a, b) => (a.name < b.name ? -1 : 1)))
    add(`SCHILY.xattr.${name}`, value);
  return Buffer.concat(records);
}

/** `<length> <key>=<value>\n`, where the length counts its own digits. */
function paxRecord(key: string, value: Uint8Array | string): Uint8Array {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value), Buffer.from("\n")]);
  let length = rest.byteLength;
  while (String(length).length + rest.byteLength !== length) length = String(length).length + rest.byteLength;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

function ustarHeader(entry: Omit<LayerEntry, "flag"> & { flag: string }): Uint8Array {
  const bytes = Buffer.alloc(blockBytes);
  const number = (offset: number, length: 8 | 12, value: number) => {
    const shown = value < 0 || value > maxNumber[length] ? 0 : value;
    bytes.write(`${shown.toString(8).padStart(length - 1, "0")}\0`, offset, "latin1");
  };
  bytes.set(entry.name.subarray(0, maxNameBytes), 0);
  number(100, 8, entry.mode);
  number(108, 8, entry.uid);
  number(116, 8, entry.gid);
  number(124, 12, entry.size);
  number(136, 12, entry.modified);
  bytes.write(entry.flag, 156, "latin1");
  bytes.set((entry.target ?? new Uint8Array()).subarray(0, maxNameBytes), 157);
  bytes.write("ustar\x0000", 257, "latin1");
  number(329, 8, entry.device?.major ?? 0);
  number(337, 8, entry.device?.minor ?? 0);
  // The checksum is taken with its own field full of spaces.
  bytes.fill(" ", 148, 156);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}
