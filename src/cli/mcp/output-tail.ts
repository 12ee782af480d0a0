/** The end of a text that arrives in chunks. */
export interface Tail {
  add(text: string): void;
  text(): string;
  readonly isWhole: boolean;
}

/** Keeps the last `maxBytes`. It holds up to twice as many, so that text is rarely copied. */
export function createTail(maxBytes: number): Tail {
  let held = "";
  let isWhole = true;
  const cut = () => {
    const end = lastBytes(held, maxBytes);
    held = end.text;
    isWhole &&= !end.isCut;
  };
  return {
    add(text) {
      held += text;
      if (held.length > 2 * maxBytes) cut();
    },
    text() {
      cut();
      return held;
    },
    get isWhole() {
      cut();
      return isWhole;
    },
  };
}

/** Returns the last `maxBytes` of a text, from the start of a character. `isCut`: true if the text is longer. */
export function lastBytes(text: string, maxBytes: number): { text: string; isCut: boolean } {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return { text, isCut: false };
  let start = bytes.length - maxBytes;
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return { text: bytes.toString("utf8", start), isCut: true };
}
