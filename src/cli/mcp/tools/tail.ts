/** The end of a text that comes in parts. */
export interface Tail {
  add(text: string): void;
  text(): string;
  readonly isWhole: boolean;
}

/** `maxCharacters`: at most twice as many are held, so that little is copied. */
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

/** The end of a text, and whether something is missing. */
export function endOf(text: string, maxCharacters: number): { text: string; isCut: boolean } {
  return { text: text.slice(-maxCharacters), isCut: text.length > maxCharacters };
}
