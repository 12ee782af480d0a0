import { RequestError } from "../http/answers.ts";

/**
 * A command's terminal output on its way to the one client that sees it. It is not stored, and is read only as fast as the client
 * takes it.
 */
export class TerminalOutput {
  #isAttached = false;
  #hasEnded = false;
  /** Output that the client has not taken yet. */
  #waiting: { chunk: Uint8Array; taken: () => void } | undefined;
  /** Signals new output, or its end. */
  #notify: () => void = () => {};

  /** `onLeave` is called if the client disconnects before the end. */
  attach(onLeave: () => void): ReadableStream<Uint8Array> {
    if (this.#isAttached) throw new RequestError(409, "another client is attached to this terminal");
    this.#isAttached = true;
    let hasBegun = false;
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      hasBegun = true;
      const chunk = await this.#take();
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    };
    const cancel = () => {
      // A `HEAD` request takes nothing.
      this.#isAttached = hasBegun;
      if (!hasBegun) return;
      this.abandon();
      onLeave();
    };
    return new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 });
  }

  /** Resolves when the client has taken the chunk, or never will. One write at a time. */
  write(chunk: Uint8Array): Promise<void> {
    if (this.#hasEnded || chunk.length === 0) return Promise.resolve();
    return new Promise((taken) => {
      this.#waiting = { chunk: chunk.slice(), taken };
      this.#notify();
    });
  }

  /** Ends the output, and discards what the client has not taken. */
  abandon(): void {
    this.#hasEnded = true;
    this.#waiting?.taken();
    this.#waiting = undefined;
    this.#notify();
  }

  async #take(): Promise<Uint8Array | undefined> {
    while (this.#waiting === undefined && !this.#hasEnded)
      await new Promise<void>((resolve) => {
        this.#notify = resolve;
      });
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.taken();
    return waiting?.chunk;
  }
}
