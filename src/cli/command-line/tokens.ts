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
  const known = namesOf(options);
  const tokens: Token[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (word === "--") {
      tokens.push({ kind: "option-terminator", index });
      while (++index < words.length) tokens.push({ kind: "positional", index, value: words[index] ?? "" });
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      tokens.push({ kind: "positional", index, value: word });
      continue;
    }
    const at = index;
    const given = word.startsWith("--")
      ? [longOption(word, known)]
      : letterOptions(word, words[at + 1], known);
    for (const { name, rawName, inline } of given) {
      const isNext = inline === undefined && takesNext(name, words[index + 1], known);
      if (isNext) index++;
      const value = isNext ? words[index] : inline;
      const inlineValue = value === undefined ? undefined : !isNext;
      tokens.push({ kind: "option", index: at, name, rawName, value, inlineValue });
    }
  }
  return tokens;
}

/** The options of a command, by each of their spellings. */
interface Names {
  longs: ReadonlyMap<string, OptionShape>;
  /** The option that a letter or a synonym means, with its dashes. */
  spellings: ReadonlyMap<string, string>;
  pairs: ReadonlyMap<string, string>;
}

function namesOf(options: Readonly<Record<string, OptionShape>>): Names {
  const longs = new Map(Object.entries(options));
  const spellings = new Map<string, string>();
  const pairs = new Map<string, string>();
  for (const [name, { short, pairs: letters = [], synonyms = [] }] of longs) {
    if (short !== undefined) spellings.set(`-${short}`, name);
    for (const pair of letters) pairs.set(pair, name);
    for (const synonym of synonyms) if (!spellings.has(synonym)) spellings.set(synonym, name);
  }
  return { longs, spellings, pairs };
}

/** An option of a word, and the value that the word itself gives to it. */
interface Given {
  name: string;
  rawName: string;
  inline: string | undefined;
}

function longOption(word: string, { longs, spellings }: Names): Given {
  const equals = word.indexOf("=");
  // An option's name has at least one character.
  const hasValue = equals > 2;
  const rawName = hasValue ? word.slice(0, equals) : word;
  const own = rawName.slice(2);
  // A name of its own comes before a synonym.
  const name = longs.has(own) ? own : (spellings.get(rawName) ?? own);
  return { name, rawName, inline: hasValue ? word.slice(equals + 1) : undefined };
}

/** Reads `-abc`: several flags, of which the last may be an option with the rest of the word as its value. */
function letterOptions(word: string, next: string | undefined, known: Names): Given[] {
  const given: Given[] = [];
  for (let at = 1; at < word.length; at++) {
    const pair = pairAt(word, at, known);
    if (pair !== undefined) {
      given.push({ name: pair, rawName: `-${word.slice(at, at + 2)}`, inline: undefined });
      at++;
      continue;
    }
    const rest = at + 1 < word.length ? word.slice(at + 1) : undefined;
    const name = meaningOf(word.charAt(at), rest ?? next, known);
    const inline = takesValue(name, known) ? rest : undefined;
    given.push({ name, rawName: `-${word.charAt(at)}`, inline });
    if (inline !== undefined) break;
  }
  return given;
}

/** Returns the option that two letters mean together, if only flags follow. */
function pairAt(word: string, at: number, { longs, spellings, pairs }: Names): string | undefined {
  const isFlag = (letter: string) => longs.get(spellings.get(`-${letter}`) ?? "")?.type === "boolean";
  return [...word.slice(at + 2)].every(isFlag) ? pairs.get(word.slice(at, at + 2)) : undefined;
}

/** Returns the option that a letter means before the given word or rest of a word. */
function meaningOf(letter: string, behind: string | undefined, { longs, spellings }: Names): string {
  const meant = spellings.get(`-${letter}`) ?? letter;
  const { to, before } = longs.get(meant)?.yields ?? {};
  return to !== undefined && before?.includes(behind ?? "") ? to : meant;
}

function takesNext(name: string, next: string | undefined, known: Names): boolean {
  const { optional } = known.longs.get(name) ?? {};
  return takesValue(name, known) && next !== undefined && (optional?.test(next) ?? true);
}

function takesValue(name: string, { longs }: Names): boolean {
  return longs.get(name)?.type === "string";
}
