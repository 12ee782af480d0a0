/** Tells whether files that are found in advance will certainly be needed. */
export class Need {
  #isCertain = false;
  #onCertain = () => {};

  get isCertain(): boolean {
    return this.#isCertain;
  }

  declare(): void {
    this.#isCertain = true;
    this.#onCertain();
  }

  withdraw(): void {
    this.#isCertain = false;
  }

  /** Resolves at the latest with `decided`; true if the files will be needed. Only one caller may wait at a time. */
  async settle(decided: Promise<unknown>): Promise<boolean> {
    const { promise: beginning, resolve } = Promise.withResolvers<void>();
    this.#onCertain = resolve;
    if (!this.#isCertain) await Promise.race([beginning, decided]);
    return this.#isCertain;
  }
}
