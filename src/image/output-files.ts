/** The destination of an image's files: a directory or a tar archive. A file's name may be known only after its content. */
import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { renameOver } from "../paths/rename-over.ts";
import { blockBytes, endBytes, fileHeader, padding } from "./tar-header.ts";

/** Disposing it closes open files, and removes a file that was not kept. */
export interface OutputFiles extends Disposable {
  create(): OutputFile;
  /** Call it when all files are kept. */
  finish(): void;
}

export interface OutputFile {
  /** The offset at which the file begins, for what writes all of it without `write`. */
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
  /** Closes a file that is not kept, and removes it. */
  let discard = () => {};
  return {
    create() {
      const temporary = join(directory, `.bough-${crypto.randomUUID()}`);
      const descriptor = openSync(temporary, "wx", 0o644);
      const remove = () => rmSync(temporary, { force: true });
      discard = () => {
        closeSync(descriptor);
        remove();
      };
      return {
        place: { path: temporary, position: 0 },
        write: (bytes) => void writeAll(descriptor, bytes),
        keep(name) {
          closeSync(descriptor);
          discard = remove;
          mkdirSync(dirname(join(directory, name)), { recursive: true });
          renameOver(temporary, join(directory, name));
          discard = () => {};
        },
      };
    },
    finish: () => undefined,
    [Symbol.dispose]: () => discard(),
  };
}

/** Writes one file at a time. Its header is rewritten when its name and size are known, so that no content is on disk twice. */
export function writeToArchive(path: string): OutputFiles {
  const descriptor = openSync(path, "wx", 0o644);
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
