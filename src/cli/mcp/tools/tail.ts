/** The end of a text that comes in parts. */
export interface Tail {
  add(text: string): void;
  text(): string;
  readonly isWhole: boolean;
}

/** Keeps the last `maxBytes`. Holds about twice as many, to copy rarely. */
export function createTail(maxBytes: number): Tail {
  let held = "";
  let isWhole = true;
  const cut = () => {
    const end = endOf(held, maxBytes);
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

/** Returns the end of a text, from the beginning of a character. `isCut` is true if the beginning of the text is missing. */
export function endOf(text: string, maxBytes: number): { text: string; isCut: boolean } {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return { text, isCut: false };
  let start = bytes.length - maxBytes;
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return { text: bytes.toString("utf8", start), isCut: true };
}
