import { BoughError } from "../../errors.ts";
import { quoted } from "../../visible.ts";
import { parsePattern, replaceMatches, trimPrefix, trimSuffix } from "../words/pattern.ts";
import { anySpace, isSpace } from "./space.ts";

/** Returns a variable's value, or `undefined` for a name that is not declared. */
export type Lookup = (name: string) => string | undefined;

export interface LexerOptions {
  escape: string;
  /** Quotes stay in the result. */
  keepsQuotes?: boolean;
  /** Escape characters stay in the result. */
  keepsEscapes?: boolean;
  /** Quotes are plain characters. */
  ignoresQuotes?: boolean;
  /** `$NAME` without a value stays unchanged. */
  keepsUnsetNames?: boolean;
}

interface Lexed {
  text: string;
  /** The text, split at white space that is neither quoted nor escaped. Values of variables are split too. */
  words: string[];
}

/** The maximum nesting of `${a:-${b:-...}}`, so that hostile text can't exhaust the stack. */
const maxDepth = 100;
/** The number of characters by which a result may be longer than its source: nested values could double it at each step. */
const maxGrowth = 1024 * 1024;

const name = /[\p{L}\p{Nd}_]+/uy;
const digits = /\p{Nd}+/uy;
const specialParameters = "@*#?-$!0";
/** Text without special characters, which is taken at once. */
const plainText = /[^$'"\\`}/]+/y;

/**
 * Lexes text as BuildKit's shell lexer does: quotes, escapes and `$` expansion, like `sh`. Throws a BoughError with BuildKit's
 * wording for text that BuildKit refuses.
 */
export function lex(source: string, lookup: Lookup, options: LexerOptions): Lexed {
  return new Lexer(source, lookup, options).lexAll();
}

class Lexer {
  private readonly source: string;
  private readonly lookup: Lookup;
  private readonly options: LexerOptions;
  private readonly limit: number;
  private position = 0;
  private depth = 0;
  private keepsEscapes: boolean;

  constructor(source: string, lookup: Lookup, options: LexerOptions) {
    this.source = source;
    this.lookup = lookup;
    this.options = options;
    this.limit = source.length + maxGrowth;
    this.keepsEscapes = options.keepsEscapes === true;
  }

  lexAll(): Lexed {
    return this.lexUntil(undefined, this.keepsEscapes);
  }

  /** Reads to the end of the source, or past the next unquoted `stop`. */
  private lexUntil(stop: string | undefined, keepsEscapes: boolean): Lexed {
    const outerKeepsEscapes = this.keepsEscapes;
    this.keepsEscapes = keepsEscapes;
    let text = "";
    const words = new WordSplitter();
    while (this.position < this.source.length) {
      const at = this.position;
      const character = this.source.charAt(at);
      if (character === stop) {
        this.position++;
        this.keepsEscapes = outerKeepsEscapes;
        return { text, words: words.finish() };
      }
      let piece = character;
      if (character === "$") {
        piece = this.lexDollar();
        words.addSplit(piece);
      } else if (character === "'" && !this.options.ignoresQuotes) {
        piece = this.lexSingleQuotes();
        words.addWhole(piece);
      } else if (character === '"' && !this.options.ignoresQuotes) {
        piece = this.lexDoubleQuotes();
        words.addWhole(piece);
      } else if (character === this.options.escape) {
        const escaped = this.takeCodePoint(this.position + 1);
        piece = this.keepsEscapes ? character + escaped : escaped;
        this.position += 1 + escaped.length;
        words.addWhole(piece);
      } else {
        piece = this.match(plainText) || character;
        this.position = at + piece.length;
        words.addSplit(piece);
      }
      text += piece;
      if (text.length > this.limit) this.fail("the result is too long");
    }
    if (stop !== undefined) this.fail(`unexpected end of statement while looking for matching ${stop}`);
    return { text, words: words.finish() };
  }

  private lexSingleQuotes(): string {
    const end = this.source.indexOf("'", this.position + 1);
    if (end < 0) {
      this.position = this.source.length;
      this.fail("unexpected end of statement while looking for matching single-quote");
    }
    const inside = this.source.slice(this.position + 1, end);
    this.position = end + 1;
    return this.options.keepsQuotes ? `'${inside}'` : inside;
  }

  private lexDoubleQuotes(): string {
    const quote = this.options.keepsQuotes ? '"' : "";
    let text = quote;
    this.position++;
    while (this.position < this.source.length) {
      const character = this.source.charAt(this.position);
      if (character === '"') {
        this.position++;
        return text + quote;
      }
      if (character === "$") {
        text += this.lexDollar();
        if (text.length > this.limit) this.fail("the result is too long");
        continue;
      }
      this.position++;
      if (character !== this.options.escape) {
        text += character;
        continue;
      }
      if (this.keepsEscapes) text += character;
      const next = this.source.charAt(this.position);
      if (next === "") continue;
      const isEscaped = next === '"' || next === "$" || next === this.options.escape;
      if (isEscaped) this.position++;
      text += isEscaped ? next : character;
    }
    return this.fail("unexpected end of statement while looking for matching double-quote");
  }

  private lexDollar(): string {
    this.position++;
    if (this.source.charAt(this.position) !== "{") {
      const found = this.lexName();
      if (found === "") return "$";
      return this.lookup(found) ?? (this.options.keepsUnsetNames ? `$${found}` : "");
    }
    this.position++;
    if (this.position === this.source.length) this.fail("syntax error: missing '}'");
    if ("{}:".includes(this.source.charAt(this.position))) this.fail("syntax error: bad substitution");
    if (++this.depth > maxDepth) this.fail(`substitutions are nested more than ${maxDepth} deep`);
    const result = this.lexSubstitution(this.lexName());
    this.depth--;
    return result;
  }

  /** Reads the rest of `${name...}`, from right after the name. */
  private lexSubstitution(variable: string): string {
    let modifier = this.takeCodePoint(this.position);
    if (modifier === "") this.fail("syntax error: missing '}'");
    this.position += modifier.length;
    if (modifier === "}")
      return this.lookup(variable) ?? (this.options.keepsUnsetNames ? `\${${variable}}` : "");
    if (modifier === "/") return this.lexReplacement(variable);

    let shown = modifier;
    const treatsEmptyAsUnset = modifier === ":";
    if (treatsEmptyAsUnset) {
      modifier = this.takeCodePoint(this.position);
      this.position += modifier.length;
      shown += modifier;
    } else if (!"+-?#%".includes(modifier)) {
      this.fail(`unsupported modifier (${modifier}) in substitution`);
    }
    const isPattern = modifier === "#" || modifier === "%";
    const operand = this.lexOperand("}", isPattern, "missing '}'");
    const value = this.lookup(variable);
    if (value === undefined && this.options.keepsUnsetNames) return `\${${variable}${shown}${operand}}`;
    const isUnset = value === undefined || (treatsEmptyAsUnset && value === "");
    switch (modifier) {
      case "-":
        return isUnset ? operand : value;
      case "+":
        return isUnset ? "" : operand;
      case "?":
        if (!isUnset) return value;
        return this.fail(
          `${variable}: ${operand || `is not allowed to be ${value === undefined ? "unset" : "empty"}`}`,
        );
      case "#":
      case "%":
        return this.applyTrim(value ?? "", modifier, operand);
      default:
        return this.fail(`unsupported modifier (${shown}) in substitution`);
    }
  }

  private applyTrim(value: string, modifier: "#" | "%", operand: string): string {
    const longest = operand.startsWith(modifier);
    const text = longest ? operand.slice(1) : operand;
    const pattern = parsePattern(text);
    if ("error" in pattern) return this.fail(`invalid pattern (${text}) in substitution: ${pattern.error}`);
    return modifier === "#" ? trimPrefix(value, pattern, longest) : trimSuffix(value, pattern, longest);
  }

  private lexReplacement(variable: string): string {
    const all = this.source.charAt(this.position) === "/";
    if (all) this.position++;
    const text = this.lexOperand("/", true, "missing '/' in \u0024{}");
    const replacement = this.lexOperand("}", true, "missing '}'");
    const value = this.lookup(variable);
    // Both kinds become one slash, as in BuildKit.
    if (value === undefined && this.options.keepsUnsetNames) return `\${${variable}/${text}/${replacement}}`;
    const pattern = parsePattern(text);
    if ("error" in pattern) return this.fail(`invalid pattern (${text}) in substitution: ${pattern.error}`);
    const replaced = replaceMatches(value ?? "", pattern, replacement, { all, limit: this.limit });
    return replaced ?? this.fail("the result is too long");
  }

  private lexOperand(stop: string, keepsEscapes: boolean, missing: string): string {
    try {
      return this.lexUntil(stop, keepsEscapes).text;
    } catch (error) {
      // If the substitution itself does not end, that is the error to report.
      if (this.position >= this.source.length) this.fail(`syntax error: ${missing}`);
      throw error;
    }
  }

  /** Reads a name, a number, one special parameter, or nothing. */
  private lexName(): string {
    const found = this.match(digits) || this.match(name);
    if (found !== "") return found;
    const character = this.source.charAt(this.position);
    if (character === "" || !specialParameters.includes(character)) return "";
    this.position++;
    return character;
  }

  private match(expression: RegExp): string {
    const start = this.position;
    expression.lastIndex = start;
    if (!expression.test(this.source)) return "";
    this.position = expression.lastIndex;
    return this.source.slice(start, this.position);
  }

  private takeCodePoint(position: number): string {
    const code = this.source.codePointAt(position);
    return code === undefined ? "" : String.fromCodePoint(code);
  }

  private fail(reason: string): never {
    throw new BoughError(`failed to process ${quoted(this.source)}: ${reason}`, { kind: "usage" });
  }
}

/** Collects words. White space ends a word in text from `addSplit`, not in text from `addWhole`. */
class WordSplitter {
  private readonly words: string[] = [];
  private word = "";

  addSplit(text: string): void {
    if (!anySpace.test(text)) {
      this.word += text;
      return;
    }
    for (const character of text) {
      if (!isSpace(character)) this.word += character;
      else this.endWord();
    }
  }

  addWhole(text: string): void {
    this.word += text;
  }

  finish(): string[] {
    this.endWord();
    return this.words;
  }

  private endWord(): void {
    if (this.word !== "") this.words.push(this.word);
    this.word = "";
  }
}
