/** Archives of any entries, including those that no tar program would write. */
export interface RawEntry {
  name: string;
  flag?: string;
  mode?: number;
  uid?: number;
  gid?: number;
  content?: string | Uint8Array;
  target?: string;
}

export function tarOf(
  entries: readonly RawEntry[],
  options: { end?: boolean } = {},
): Uint8Array<ArrayBuffer> {
  const blocks = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? "");
    const padding = Buffer.alloc((512 - (content.length % 512)) % 512);
    return [header(entry, content.length), content, padding];
  });
  return Buffer.concat([...blocks, ...(options.end === false ? [] : [Buffer.alloc(1024)])]);
}

function header(
  { name, flag = "0", mode = 0o644, uid = 0, gid = 0, target = "" }: RawEntry,
  size: number,
): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0, 100);
  block.write(`${mode.toString(8).padStart(7, "0")}\0`, 100);
  block.write(`${uid.toString(8).padStart(7, "0")}\0${gid.toString(8).padStart(7, "0")}\0`, 108);
  block.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  block.write(`${(1_700_000_000).toString(8)}\0`, 136);
  block.write(" ".repeat(8), 148);
  block.write(flag, 156);
  block.write(target, 157, 100);
  block.write("ustar\x0000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** Yields bytes in chunks of a size that fits no block, as a network would. */
export async function* inChunks(bytes: Uint8Array, size = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
