import { closeSync, openSync, readSync } from "node:fs";

/**
 * Streams a file, which stays readable after its view is disposed of. Uses no FileHandle: one left open by an aborted request is
 * an uncaught error at its collection.
 */
export function streamFile(path: string): ReadableStream<Uint8Array> {
  const descriptor = openSync(path, "r");
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      try {
        const buffer = new Uint8Array(256 * 1024);
        const count = readSync(descriptor, buffer);
        if (count > 0) return controller.enqueue(buffer.subarray(0, count));
        controller.close();
      } catch (error) {
        controller.error(error);
      }
      closeSync(descriptor);
    },
    cancel: () => closeSync(descriptor),
  });
}
