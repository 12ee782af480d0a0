/** The destination of an image's files: a directory or a tar archive. A file's name may be known only after its content. */
import { closeSync, ftruncateSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { blockBytes, endBytes, fileHeader, padding } from "./tar-header.ts";
import { openTemporaryFile, type TemporaryFile } from "./temporary-file.ts";

/** Disposing it closes open files, and removes a file that was not kept. */
export interface OutputFiles extends Disposable {
  create(): OutputFile;
  /** Call it when all files are kept. */
  finish(): void;
}

export interface OutputFile {
  /** The position of the file's content, for a writer that does not call `write`. */
  place: { path: string; position: number };
  write(bytes: Uint8Array): void;
  /** Finishes the file of `size` bytes under a relative name. Files of the same name have the same content. */
  keep(name: string, size: number): void;
}

export function putFile(files: OutputFiles, name: string, content: Uint8Array | string): void {
  const file = files.create();
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  file.write(bytes);
  file.keep(name, bytes.byteLength);
}

/** Writes one file at a time. */
export function writeToDirectory(directory: string): OutputFiles {
  let open: TemporaryFile | undefined;
  const close = () => {
    open?.[Symbol.dispose]();
    open = undefined;
  };
  return {
    create() {
      const file = openTemporaryFile(directory);
      open = file;
      return {
        place: { path: file.path, position: 0 },
        write: (bytes) => void writeAll(file.descriptor, bytes),
        keep(name) {
          mkdirSync(dirname(join(directory, name)), { recursive: true });
          file.keep(join(directory, name));
          close();
        },
      };
    },
    finish: () => undefined,
    [Symbol.dispose]: close,
  };
}

/**
 * Writes one file at a time to an archive. A header is written again when its file's name and size are known, so that no content is on
 * disk twice.
 *
 * @param flags `r+` for an empty file that exists
 */
export function writeToArchive(path: string, flags: "wx" | "r+" = "wx"): OutputFiles {
  const descriptor = openSync(path, flags, 0o644);
  const names = new Set<string>();
  let position = 0;
  return {
    create() {
      const start = position;
      position += writeAll(descriptor, new Uint8Array(blockBytes), position);
      const content = position;
      return {
        place: { path, position },
        write(bytes) {
          position += writeAll(descriptor, bytes, position);
        },
        keep(name, size) {
          position = content + size;
          if (names.has(name)) {
            position = start;
            ftruncateSync(descriptor, position);
            return;
          }
          names.add(name);
          const header = fileHeader({ path: name, size, mode: 0o644, uid: 0, gid: 0 }, new Date(0));
          writeAll(descriptor, header, start);
          position += writeAll(descriptor, new Uint8Array(padding(size)), position);
        },
      };
    },
    finish() {
      writeAll(descriptor, new Uint8Array(endBytes), position);
    },
    [Symbol.dispose]: () => closeSync(descriptor),
  };
}

function writeAll(descriptor: number, bytes: Uint8Array, position?: number): number {
  for (let done = 0; done < bytes.byteLength; ) {
    const at = position === undefined ? null : position + done;
    done += writeSync(descriptor, bytes, done, bytes.byteLength - done, at);
  }
  return bytes.byteLength;
}
