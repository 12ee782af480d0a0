/** Names that a script gives values by itself. */
export interface SetNames {
  names: Set<string>;
  /** It may set any name: by `eval`, or by reading a file of settings. */
  mayBeAny: boolean;
}

/** Stands in a word's text for a quotation mark or an escape, so that `"A=1"` is not taken for an assignment. */
export const quotationMark = "\u0000";
/** Stands in a word's text for what the shell puts in. */
export const expansionMark = "\u0001";

/** What matters of a word that is not at its end yet. */
export interface WordStart {
  isEmpty: boolean;
  /** Digits and nothing else, or nothing at all. */
  isNumber: boolean;
  hasEqualsSign: boolean;
  hasBrace: boolean;
}

const emptyWord: WordStart = { isEmpty: true, isNumber: true, hasEqualsSign: false, hasBrace: false };

const assignment = /^([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?\+?=/;
const argumentName = new RegExp(`^${quotationMark}?([A-Za-z_][A-Za-z0-9_]*)`);
const startsWithExpansion = new RegExp(`^${quotationMark}?${expansionMark}`);

/** Words behind which a command starts. */
const leadWords = new Set("if then else elif do while until ! { time command builtin exec".split(" "));
/** Builtins that set the variables their arguments name. */
const setters = new Set(
  "export local readonly declare typeset read unset getopts mapfile readarray let printf for select".split(
    " ",
  ),
);
/** Builtins that set variables which nobody names. */
const silentlySet = new Map([
  ["cd", ["PWD", "OLDPWD"]],
  ["pushd", ["PWD", "OLDPWD"]],
  ["popd", ["PWD", "OLDPWD"]],
  ["read", ["REPLY"]],
  ["getopts", ["OPTARG", "OPTIND"]],
]);
/** Builtins that run text which does not stand in the script. */
const runners = new Set([".", "source", "eval"]);

/**
 * Follows the commands of a script word by word, as far as it takes to know which names it sets and where blanks
 * split words. One for each level of `$(...)`.
 */
export class CommandReader {
  wordStart = emptyWord;
  /** The word is the first of a command. */
  atStart = true;
  /** The word says where a redirection leads. */
  afterRedirection = false;
  /** Between a case's `in` or `;;` and the `)` behind its pattern. */
  inPattern = false;
  /** The word so far, with marks for what is not plain text. */
  private word = "";
  private caseDepth = 0;
  private command = "";
  private readonly found: SetNames;

  constructor(found: SetNames) {
    this.found = found;
  }

  /** Where the shell makes several words of an unquoted value with blanks in it. */
  get splitsWords(): boolean {
    return (
      !this.afterRedirection &&
      !this.inPattern &&
      this.command !== "case" &&
      this.command !== "[[" &&
      !this.wordStart.hasEqualsSign
    );
  }

  add(text: string): void {
    const { isNumber, hasEqualsSign, hasBrace } = this.wordStart;
    this.word += text;
    this.wordStart = {
      isEmpty: false,
      isNumber: isNumber && /^\d*$/.test(text),
      hasEqualsSign: hasEqualsSign || text.includes("="),
      hasBrace: hasBrace || text.includes("{"),
    };
  }

  /** A number in front of `<` or `>` says which file is meant; it is no word. */
  startRedirection(): void {
    if (this.wordStart.isNumber) this.dropWord();
    else this.endWord();
  }

  /** `;`, `|`, `&&`, a line's end and the like. */
  endCommand(separator: string): void {
    this.endWord();
    this.atStart = true;
    this.command = "";
    if (separator === ";;" && this.caseDepth > 0) this.inPattern = true;
  }

  endWord(): void {
    const { word, wordStart } = this;
    this.dropWord();
    if (wordStart.isEmpty) return;
    if (this.afterRedirection) this.afterRedirection = false;
    else if (this.inPattern) this.endPatternWord(word);
    else if (this.atStart) this.endCommandWord(word);
    else this.endArgument(word);
  }

  private dropWord(): void {
    this.word = "";
    this.wordStart = emptyWord;
  }

  /** `esac` in the place of a pattern ends the case. */
  private endPatternWord(word: string): void {
    if (word !== "esac") return;
    this.inPattern = false;
    this.caseDepth--;
    this.atStart = false;
  }

  private endCommandWord(word: string): void {
    const [, assigned] = assignment.exec(word) ?? [];
    if (assigned !== undefined) {
      this.found.names.add(assigned);
      return;
    }
    if (leadWords.has(word)) return;
    this.atStart = false;
    this.command = word;
    if (word === "case") this.caseDepth++;
    if (word === "esac") this.caseDepth--;
    if (runners.has(word)) this.found.mayBeAny = true;
    for (const name of silentlySet.get(word) ?? []) this.found.names.add(name);
  }

  private endArgument(word: string): void {
    if (this.command === "case" && word === "in") this.inPattern = true;
    if (!setters.has(this.command)) return;
    const [, name] = argumentName.exec(word) ?? [];
    if (name !== undefined) this.found.names.add(name);
    if (startsWithExpansion.test(word) && this.command !== "printf") this.found.mayBeAny = true;
    // Behind a loop's own name there are only values.
    if (this.command === "for" || this.command === "select") this.command = "";
  }
}
