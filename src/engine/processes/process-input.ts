import type { InputSink } from "../system/helper.ts";
import type { InputSpec } from "./exec-spec.ts";

/** Bytes that may wait for a process that does not read them: they are kept in memory. */
const maxWaitingBytes = 16 * 1024 * 1024;

/** A process's standard input, which can be written to for as long as nobody has closed it. */
export class ProcessInput {
  #sink: InputSink | undefined;
  #waitingBytes = 0;
  /** The last of what has been written on its way to the process. */
  #sent: Promise<unknown> = Promise.resolve();
  isClosed = false;

  /** Writes what the request brought. Resolves when the process has taken it or has ended; at once where more may come. */
  async connect(sink: InputSink, first: InputSpec): Promise<void> {
    this.#sink = sink;
    this.write(first);
    if (first.close) await this.#sent;
  }

  /** Returns false where too much is waiting already. */
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

/** A process that ends without reading all of it: its own affair. */
async function send(sink: InputSink, bytes: Uint8Array, close: boolean): Promise<void> {
  try {
    // What either comes to is heard: a rejection that nobody hears would end this process, too.
    const written = bytes.length > 0 ? sink.write(bytes) : 0;
    await Promise.all([written, close ? sink.end() : sink.flush()]);
  } catch {
    // The pipe is closed at its other end.
  }
}
