import { tap } from "../streams.ts";
import type { Compressor } from "./compression.ts";
import { type Descriptor, layerMediaType } from "./oci-layout.ts";
import { maxNameBytes, padding, type WrittenHeader, writeHeader } from "./tar-header.ts";

/** The entry of a directory that hides all that lower layers have in it: an opaque whiteout (OCI image specification). */
export const opaqueWhiteout = ".wh..wh..opq";

/** An entry of a layer's archive. Its name is relative to the root; a directory's ends with a slash. */
export interface LayerEntry extends WrittenHeader {
  flag: "0" | "1" | "2" | "3" | "4" | "5" | "6";
  attributes?: readonly { name: string; value: Uint8Array }[];
}

/** Returns a POSIX ustar header. PAX records before it have what does not fit; extended attributes are `SCHILY.xattr.<name>`. */
export function layerHeader(entry: LayerEntry): Uint8Array {
  const records = paxRecords(entry);
  const header = ustarHeader(entry);
  if (records.byteLength === 0) return header;
  const name = Buffer.from("PaxHeaders/entry");
  const size = records.byteLength;
  const pax = ustarHeader({ name, flag: "x", mode: 0o644, uid: 0, gid: 0, size, modified: 0 });
  return Buffer.concat([pax, records, new Uint8Array(padding(size)), header]);
}

/** The maximum values of fields with 8 and 12 bytes, which end with a NUL. */
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

/** Returns `<length> <key>=<value>\n`, where the length includes its own digits. */
function paxRecord(key: string, value: Uint8Array | string): Uint8Array {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value), Buffer.from("\n")]);
  let length = rest.byteLength;
  while (String(length).length + rest.byteLength !== length) length = String(length).length + rest.byteLength;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

/** Returns a header in which values that have a PAX record are truncated or 0. */
function ustarHeader(header: WrittenHeader): Uint8Array {
  const { name, target, uid, gid, size, modified, device } = header;
  const fitting = (value: number, length: 8 | 12) => (value < 0 || value > maxNumber[length] ? 0 : value);
  return writeHeader({
    ...header,
    name: name.subarray(0, maxNameBytes),
    target: target?.subarray(0, maxNameBytes),
    uid: fitting(uid, 8),
    gid: fitting(gid, 8),
    size: fitting(size, 12),
    modified: fitting(modified, 12),
    device: { major: fitting(device?.major ?? 0, 8), minor: fitting(device?.minor ?? 0, 8) },
  });
}

/** A stored layer, with the digest of its uncompressed content. */
export interface LayerBlob extends Descriptor {
  /** `sha256:` and 64 hexadecimal digits. */
  diffId: string;
}

/** Writes a layer's archive with compression, and returns its descriptor. */
export async function writeLayerBlob(
  archive: AsyncIterable<Uint8Array>,
  { compression, compress }: Pick<Compressor, "compression" | "compress">,
  write: (bytes: Uint8Array) => void,
): Promise<LayerBlob> {
  const stored = new Bun.CryptoHasher("sha256");
  const content = compression === "none" ? undefined : new Bun.CryptoHasher("sha256");
  let size = 0;
  for await (const bytes of compress(tap(archive, (chunk) => content?.update(chunk)))) {
    stored.update(bytes);
    size += bytes.byteLength;
    write(bytes);
  }
  const digest = `sha256:${stored.digest("hex")}`;
  const diffId = content === undefined ? digest : `sha256:${content.digest("hex")}`;
  return { mediaType: layerMediaType(compression), digest, size, diffId };
}
