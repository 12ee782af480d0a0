/** The end of a text that comes in parts. */
export interface Tail {
  add(text: string): void;
  text(): string;
  readonly isWhole: boolean;
}

/** Keeps the last `maxCharacters`. Holds at most twice as many, to copy rarely. */
export function createTail(maxCharacters: number): Tail {
  let held = "";
  let isWhole = true;
  const cut = () => {
    if (held.length <= maxCharacters) return;
    held = held.slice(-maxCharacters);
    isWhole = false;
  };
  return {
    add(text) {
      held += text;
      if (held.length > 2 * maxCharacters) cut();
    },
    text() {
      cut();
      return held;
    },
    get isWhole() {
      return isWhole && held.length <= maxCharacters;
    },
  };
}

/** Returns the end of a text. `isCut` is true if the beginning is missing. */
export function endOf(text: string, maxCharacters: number): { text: string; isCut: boolean } {
  return { text: text.slice(-maxCharacters), isCut: text.length > maxCharacters };
}
