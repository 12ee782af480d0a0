import { closeSync, constants, openSync, readSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { SpoolFile } from "../../terminal/output/held-output.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = constants;

/** Opens a file in `directory` and removes its name, so that the file disappears with the process, however that ends. */
export function openSpoolFile(directory: string): SpoolFile {
  const path = join(directory, `.output-${crypto.randomUUID()}`);
  const descriptor = openSync(path, O_RDWR | O_CREAT | O_EXCL | (O_NOFOLLOW ?? 0), 0o600);
  let size = 0;
  let isNamed = true;
  const unname = () => {
    if (!isNamed) return;
    try {
      rmSync(path);
      isNamed = false;
    } catch {
      // Windows can't remove an open file: `close` removes it.
    }
  };
  unname();
  return {
    append(text) {
      const bytes = Buffer.from(text);
      for (let written = 0; written < bytes.length; )
        written += writeSync(descriptor, bytes, written, bytes.length - written, size + written);
      // Partly written text does not count.
      size += bytes.length;
    },
    read: (buffer, position) =>
      readSync(descriptor, buffer, 0, Math.min(buffer.length, size - position), position),
    close() {
      closeSync(descriptor);
      unname();
    },
  };
}
