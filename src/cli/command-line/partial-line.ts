/** A command line that is still being typed, split as by a shell. */
interface PartialLine {
  /** Complete words, without the program's name. */
  words: string[];
  /** The word that the cursor is in, as far as it is typed; empty after a space. */
  current: string;
}

export function splitPartialLine(line: string): PartialLine {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const character = line[at] ?? "";
    if (quote === "" && /\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      continue;
    }
    word ??= "";
    if (quote === "" && (character === "'" || character === '"')) quote = character;
    else if (character === quote) quote = "";
    else if (character === "\\" && quote !== "'") word += line[++at] ?? "";
    else word += character;
  }
  return { words: words.slice(1), current: words.length === 0 ? "" : (word ?? "") };
}
