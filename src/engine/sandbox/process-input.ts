import type { InputSink } from "../../programs/helper.ts";

/** Bytes to write to a standard input, and whether to close it afterwards. */
export interface InputSpec {
  bytes: Uint8Array;
  close: boolean;
}

/** The maximum number of bytes that wait in memory until a process reads them. */
const maxWaitingBytes = 16 * 1024 * 1024;

/** A process's standard input, which can be written to until it is closed. */
export class ProcessInput {
  #sink: InputSink | undefined;
  #waitingBytes = 0;
  /** The latest write. */
  #sent: Promise<unknown> = Promise.resolve();
  isClosed = false;

  /** Writes the request's input. Resolves when the process has taken it or has ended; at once if more may follow. */
  async connect(sink: InputSink, first: InputSpec): Promise<void> {
    this.#sink = sink;
    this.write(first);
    if (first.close) await this.#sent;
  }

  /** Writes input. Returns false if too much is waiting already. */
  write({ bytes, close }: InputSpec): boolean {
    const sink = this.#sink;
    if (sink === undefined || this.isClosed) return true;
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes.length > maxWaitingBytes) return false;
    this.isClosed = close;
    this.#waitingBytes += bytes.length;
    this.#sent = send(sink, bytes, close).finally(() => {
      this.#waitingBytes -= bytes.length;
    });
    return true;
  }
}

/** Writes input, and ignores that a process ends without reading everything. */
async function send(sink: InputSink, bytes: Uint8Array, close: boolean): Promise<void> {
  try {
    // Both promises are awaited: an unhandled rejection would end this process.
    const written = bytes.length > 0 ? sink.write(bytes) : 0;
    await Promise.all([written, close ? sink.end() : sink.flush()]);
  } catch {
    // The other end of the pipe is closed.
  }
}
