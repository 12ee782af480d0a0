import { cannotWrite } from "../process/write-error.ts";

/** The maximum number of concurrent copies, which is enough to keep a disk busy. */
const maxCopies = 4;

/** Large files that are being copied, a few at a time. */
export class RunningCopies implements AsyncDisposable {
  readonly #running = new Set<Promise<void>>();
  #failure: { path: string; error: unknown } | undefined;

  /** Adds a copy. Resolves when another one may start. Rejects with the error of an earlier copy. */
  async add(path: string, copy: Promise<void>): Promise<void> {
    const running = copy
      .catch((error: unknown) => {
        this.#failure ??= { path, error };
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
    if (this.#running.size >= maxCopies) await Promise.race(this.#running);
    this.#throwFailure();
  }

  async drain(): Promise<void> {
    await Promise.all(this.#running);
    this.#throwFailure();
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw cannotWrite(this.#failure.path, this.#failure.error);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#running);
  }
}
