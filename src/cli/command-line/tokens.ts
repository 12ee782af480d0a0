/**
 * A token of a command line, by POSIX and GNU conventions. `parseArgs` of node:util returns the same tokens if it is not strict,
 * but to load it takes longer than a short command does.
 */
export type Token =
  | { kind: "positional"; index: number; value: string }
  | { kind: "option-terminator"; index: number }
  | {
      kind: "option";
      index: number;
      name: string;
      /** The option as given: `-t`, `--tag`. */
      rawName: string;
      value: string | undefined;
      /** `--tag=x`, `-tx` */
      inlineValue: boolean | undefined;
    };

export interface OptionShape {
  type: "string" | "boolean";
  short?: string;
  /** Pairs of letters, such as `it`, that mean this option in a word of flags, whatever each means alone. */
  pairs?: readonly string[];
  /** Other names, with their dashes. */
  synonyms?: readonly string[];
  /** The letter means another option, `to`, if the word behind it is one of these: `-f json`. */
  yields?: { to: string; before: readonly string[] } | undefined;
  /** The value may be left out: the next word is one only if it looks like this. */
  optional?: RegExp | undefined;
}

export function tokenize(words: readonly string[], options: Readonly<Record<string, OptionShape>>): Token[] {
  const longs = new Map(Object.entries(options));
  const names = new Map<string, string>();
  const pairs = new Map<string, string>();
  for (const [name, { short, pairs: letters = [], synonyms = [] }] of longs) {
    if (short !== undefined) names.set(`-${short}`, name);
    for (const pair of letters) pairs.set(pair, name);
    for (const synonym of synonyms) if (!names.has(synonym)) names.set(synonym, name);
  }
  const takesValue = (name: string) => longs.get(name)?.type === "string";
  const isFlag = (letter: string) => longs.get(names.get(`-${letter}`) ?? "")?.type === "boolean";
  const tokens: Token[] = [];
  let index = 0;

  const option = (rawName: string, name: string, inline: string | undefined) => {
    const at = index;
    const next = words[index + 1];
    const fits = next !== undefined && (longs.get(name)?.optional?.test(next) ?? true);
    const isNext = inline === undefined && takesValue(name) && fits;
    const value = isNext ? words[++index] : inline;
    const inlineValue = value === undefined ? undefined : !isNext;
    tokens.push({ kind: "option", index: at, name, rawName, value, inlineValue });
  };

  for (; index < words.length; index++) {
    const word = words[index] ?? "";
    if (word === "--") {
      tokens.push({ kind: "option-terminator", index });
      while (++index < words.length) tokens.push({ kind: "positional", index, value: words[index] ?? "" });
    } else if (word.startsWith("--")) {
      const equals = word.indexOf("=");
      // An option's name has at least one character.
      const hasValue = equals > 2;
      const rawName = hasValue ? word.slice(0, equals) : word;
      option(rawName, longName(rawName, longs, names), hasValue ? word.slice(equals + 1) : undefined);
    } else if (word.startsWith("-") && word.length > 1) {
      for (let at = 1; at < word.length; at++) {
        const pair = pairs.get(word.slice(at, at + 2));
        if (pair !== undefined && [...word.slice(at + 2)].every(isFlag)) {
          option(`-${word.slice(at, at + 2)}`, pair, undefined);
          at++;
          continue;
        }
        const letter = word.charAt(at);
        const meant = names.get(`-${letter}`) ?? letter;
        const { to, before } = longs.get(meant)?.yields ?? {};
        const behind = at + 1 < word.length ? word.slice(at + 1) : words[index + 1];
        const name = to !== undefined && before?.includes(behind ?? "") ? to : meant;
        const rest = takesValue(name) && at + 1 < word.length ? word.slice(at + 1) : undefined;
        option(`-${letter}`, name, rest);
        if (rest !== undefined) break;
      }
    } else {
      tokens.push({ kind: "positional", index, value: word });
    }
  }
  return tokens;
}

/** A name of its own comes before a synonym. */
function longName(
  rawName: string,
  longs: ReadonlyMap<string, OptionShape>,
  names: ReadonlyMap<string, string>,
): string {
  const name = rawName.slice(2);
  return longs.has(name) ? name : (names.get(rawName) ?? name);
}
