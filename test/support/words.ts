/** Splits a command line into words as a POSIX shell does: with quotes and backslashes only. A ` # ` begins a comment. */
export function splitWords(line: string): string[] {
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
    if (quote === "" && character === "#" && word === undefined) break;
    word ??= "";
    if (quote === "" && /['"]/.test(character)) quote = character;
    else if (character === quote) quote = "";
    else if (character === "\\" && quote !== "'") word += line[++at] ?? "";
    else word += character;
  }
  return word === undefined ? words : [...words, word];
}
