import {
  blockBytes,
  isZeroBlock,
  numberAt,
  padding,
  parseHeader,
  parsePaxRecords,
  type TarHeader,
} from "./tar-header.ts";

/** Measures a tar archive that passes by, without keeping any of it. */
export interface TarMeter {
  /** Throws where the bytes so far are no tar archive. */
  push(chunk: Uint8Array): void;
  /** Files, directories and links so far. */
  readonly entries: number;
  /** Bytes that the files so far take once they are unpacked, holes included: most programs write these out. */
  readonly bytes: number;
}

/** A PAX header or a long name: Go's archive/tar, which umoci reads with, takes at most 1 MiB. */
const maxExtensionBytes = 1024 * 1024;
/** Links, devices, directories and pipes have no content, whatever size they carry. */
const headerOnly = "123456";

export function createTarMeter(): TarMeter {
  let entries = 0;
  let bytes = 0;
  let hasEnded = false;
  /** Bytes of content to pass over. */
  let skip = 0;
  /** What is being collected: a header, or the content of an extension header. */
  let wanted = blockBytes;
  let collected: Uint8Array[] = [];
  let missing = wanted;
  let receive: (block: Uint8Array) => void = receiveHeader;
  /** From the PAX header of the next entry. */
  let records: ReadonlyMap<string, string> = new Map();

  function collect(length: number, receiver: (block: Uint8Array) => void): void {
    wanted = length;
    missing = length;
    collected = [];
    receive = receiver;
  }

  function receiveHeader(block: Uint8Array): void {
    collect(blockBytes, receiveHeader);
    if (isZeroBlock(block)) {
      hasEnded = true;
      return;
    }
    const header = parseHeader(block);
    if (header === undefined) throw new Error("a header's checksum is wrong");
    if ("xgLK".includes(header.flag)) receiveExtension(header);
    else receiveEntry(header, block);
  }

  function receiveExtension({ flag, size }: TarHeader): void {
    if (size > maxExtensionBytes) throw new Error("a header is larger than any should be");
    if (size === 0) return;
    collect(size + padding(size), (content) => {
      // A global header says nothing of sizes to Go's reader.
      if (flag === "x") records = parsePaxRecords(content.subarray(0, size));
      collect(blockBytes, receiveHeader);
    });
  }

  function receiveEntry({ flag, size }: TarHeader, block: Uint8Array): void {
    entries += 1;
    const stored = headerOnly.includes(flag) ? 0 : checkSize(numberIn(records, "size") ?? size);
    const real = numberIn(records, "GNU.sparse.realsize") ?? numberIn(records, "GNU.sparse.size") ?? 0;
    records = new Map();
    bytes += Math.max(stored, checkSize(real), flag === "S" ? checkSize(numberAt(block, 483, 12)) : 0);
    skip = stored + padding(stored);
    if (flag === "S" && block[482] !== 0) collect(blockBytes, receiveSparseMap);
  }

  /** GNU's old sparse format: blocks with more of the map come before the content. */
  function receiveSparseMap(block: Uint8Array): void {
    collect(blockBytes, block[504] === 0 ? receiveHeader : receiveSparseMap);
  }

  return {
    push(chunk) {
      for (let at = 0; at < chunk.byteLength && !hasEnded; ) {
        if (skip > 0 && receive === receiveHeader && missing === wanted) {
          const passed = Math.min(skip, chunk.byteLength - at);
          skip -= passed;
          at += passed;
          continue;
        }
        const part = chunk.subarray(at, at + missing);
        at += part.byteLength;
        missing -= part.byteLength;
        if (missing > 0) collected.push(part.slice());
        else receive(collected.length === 0 ? part : Buffer.concat([...collected, part]));
      }
    },
    get entries() {
      return entries;
    },
    get bytes() {
      return bytes;
    },
  };
}

function numberIn(records: ReadonlyMap<string, string>, key: string): number | undefined {
  const text = records.get(key);
  return text === undefined ? undefined : Number(text);
}

function checkSize(size: number): number {
  if (Number.isSafeInteger(size) && size >= 0) return size;
  throw new Error("a file's size makes no sense");
}
