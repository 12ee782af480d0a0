/** Layers with tables of contents, as programs for `zstd:chunked` make them. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTar, type TarEntry } from "../../src/image/tar-reader.ts";
import { inOneChunk } from "../../src/streams.ts";

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
  annotations?: Record<string, string>;
}

/** Replaces the layers of the only image in an OCI layout. `edit` changes what a table says. */
export async function chunkLayers(
  layout: string,
  edit: (table: string) => string = (table) => table,
): Promise<void> {
  const pathOf = (digest: string) => join(layout, "blobs/sha256", digest.slice("sha256:".length));
  const json = (path: string) => JSON.parse(readFileSync(path, "utf8"));
  const put = (bytes: Uint8Array): Omit<Descriptor, "mediaType"> => {
    const digest = digestOf(bytes);
    writeFileSync(pathOf(digest), bytes);
    return { digest, size: bytes.byteLength };
  };
  const index = json(join(layout, "index.json"));
  const [described] = index.manifests;
  const manifest = json(pathOf(described.digest));
  const layers: Descriptor[] = [];
  for (const { digest } of manifest.layers) {
    const content = Bun.gunzipSync(readFileSync(pathOf(digest)));
    const table = Buffer.from(edit(JSON.stringify({ version: 1, entries: await entriesIn(content) })));
    const [packed, packedTable] = [Bun.zstdCompressSync(content), Bun.zstdCompressSync(table)];
    const prefix = "io.github.containers.zstd-chunked";
    const start = packed.byteLength + frameHeader(0).byteLength;
    layers.push({
      mediaType: "application/vnd.oci.image.layer.v1.tar+zstd",
      ...put(Buffer.concat([packed, frameHeader(packedTable.byteLength), packedTable])),
      annotations: {
        [`${prefix}.manifest-checksum`]: digestOf(packedTable),
        [`${prefix}.manifest-position`]: `${start}:${packedTable.byteLength}:${table.byteLength}:1`,
      },
    });
  }
  Object.assign(described, put(Buffer.from(JSON.stringify({ ...manifest, layers }))));
  writeFileSync(join(layout, "index.json"), JSON.stringify(index));
}

const types = { file: "reg", directory: "dir", symlink: "symlink", hardlink: "hardlink", other: "char" };

async function entriesIn(content: Uint8Array): Promise<object[]> {
  const entries: object[] = [];
  for await (const entry of readTar(inOneChunk(content))) {
    entries.push(entryOf(entry));
    // Each part of a content has an entry of its own.
    if (entry.type === "file" && entry.size > 0) entries.push({ type: "chunk", name: entry.name, offset: 0 });
  }
  return entries;
}

/** Values that are empty are left out. */
function entryOf({ type, name, target, mode, uid, gid, modified, attributes, size }: TarEntry): object {
  const xattrs = Object.fromEntries(attributes.map((each) => [each.name, each.value.toString("base64")]));
  return {
    ...{ type: types[type], name, mode, modtime: new Date(modified * 1000).toISOString() },
    ...(target !== "" && { linkName: target }),
    ...(size > 0 && { size }),
    ...(uid !== 0 && { uid }),
    ...(gid !== 0 && { gid }),
    ...(attributes.length > 0 && { xattrs }),
  };
}

/** The header of a zstd frame that decompressors skip. */
function frameHeader(bytes: number): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32LE(0x184d2a50, 0);
  header.writeUInt32LE(bytes, 4);
  return header;
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
}
