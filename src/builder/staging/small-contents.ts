import { lstatSync } from "node:fs";
import type { FileToHash } from "../../context/hashing/hash-file.ts";
import { isSameStat } from "../../context/hashing/hash-file.ts";
import { fileStatOf } from "../../context/sources/entry-of.ts";
import type { SmallContents } from "../prefetch.ts";

/** Reading a larger file again takes little time compared with sending it. */
const maxFileBytes = 64 * 1024;
const maxBytes = 32 * 1024 * 1024;
/** Each content takes some hundred bytes in addition to its own. */
const maxFiles = 10_000;

export function createSmallContents(): SmallContents {
  const contents = new Map<string, Pick<FileToHash, "absolutePath" | "stat"> & { bytes: Uint8Array }>();
  let total = 0;
  const remove = (sha256: string) => {
    const content = contents.get(sha256);
    contents.delete(sha256);
    total -= content?.bytes.length ?? 0;
    return content;
  };
  return {
    keep(sha256, bytes, { absolutePath, stat }) {
      if (bytes.length > maxFileBytes || contents.has(sha256)) return;
      for (const oldest of contents.keys()) {
        if (contents.size < maxFiles && total + bytes.length <= maxBytes) break;
        remove(oldest);
      }
      contents.set(sha256, { bytes: new Uint8Array(bytes), absolutePath, stat });
      total += bytes.length;
    },
    take(sha256) {
      const content = remove(sha256);
      if (content === undefined) return undefined;
      const stats = lstatSync(content.absolutePath, { throwIfNoEntry: false });
      return stats !== undefined && isSameStat(fileStatOf(stats), content.stat) ? content.bytes : undefined;
    },
  };
}
