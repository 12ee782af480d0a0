import type { Runtime } from "./runtime.ts";

/** Writes chunks to standard output as fast as its reader takes them. */
export async function writeChunks(
  chunks: ReadableStream<Uint8Array>,
  { stdout, signal }: Pick<Runtime, "stdout" | "signal">,
): Promise<void> {
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    stdout.write(chunk);
    await stdout.flush();
  }
}
