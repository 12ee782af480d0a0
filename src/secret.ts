/**
 * Bytes of a token or a password, which only `reveal` and `text` return: they appear in no message and no inspection of an object
 * that holds the secret. Writing one as JSON throws, so what is stored or shown has to leave it out.
 */
export class Secret {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  static of(text: string): Secret {
    return new Secret(Buffer.from(text));
  }

  /** Returns the bytes for their one destination: a request's field for secrets, or the memory of a command. */
  reveal(): Uint8Array {
    return this.#bytes;
  }

  /** Returns the same as text: for a header, a request's field for a password, or a profile file. */
  text(): string {
    return Buffer.from(this.#bytes).toString();
  }

  toJSON(): never {
    throw new Error("a secret can't be written as JSON");
  }
}
