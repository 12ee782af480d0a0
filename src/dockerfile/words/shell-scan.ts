import {
  CommandReader,
  expansionMark,
  quotationMark,
  type SetNames,
  type WordStart,
} from "./shell-command.ts";

/** How the shell reads what stands in the place of a variable. */
export type Quoting = "none" | "double" | "heredoc" | "arithmetic";

/** `$NAME` or `${NAME...}` where the shell would expand it. */
export interface Reference {
  written: string;
  name: string;
  /** What stands behind the name inside of braces: `:-word`, `#pattern`, or nothing. */
  operator: string;
  quoting: Quoting;
  /** Where it starts in the script. */
  start: number;
  /** The next three matter without quotes only. It is, or is part of, the first word of a command. */
  atCommandStart: boolean;
  splitsWords: boolean;
  /** What of its word stands in front of it. */
  wordStart: WordStart;
  /** The delimiter of the here-document around it. */
  delimiter: string;
}

export interface ScannedScript {
  /** The whole script, cut at its references. */
  pieces: readonly (string | Reference)[];
  set: SetNames;
}

interface HeredocStart {
  delimiter: string;
  isQuoted: boolean;
  stripsTabs: boolean;
}

const variableName = /[A-Za-z_][A-Za-z0-9_]*/y;
const delimiterForm = /(-?)[ \t]*((?:\\.|'[^']*'|"[^"]*"|[^\s;&|<>()'"\\])+)/sy;
const arithmeticAssignment = /(?<![=!<>])=(?!=)|<<=|>>=|\+\+|--/;
/** Nested deeper than this, the rest of a script is left to the shell. */
const maximumDepth = 100;

/** Finds the variables that a POSIX shell would expand in a script. Never fails: text that is no script has none. */
export function scanShell(script: string): ScannedScript {
  return new ShellScanner(script).scan();
}

class ShellScanner {
  private readonly script: string;
  private readonly pieces: (string | Reference)[] = [];
  private readonly set: SetNames = { names: new Set(), mayBeAny: false };
  private reader = new CommandReader(this.set);
  private heredocs: HeredocStart[] = [];
  private delimiter = "";
  private position = 0;
  private end: number;
  private copied = 0;
  private depth = 0;

  constructor(script: string) {
    this.script = script;
    this.end = script.length;
  }

  scan(): ScannedScript {
    while (this.position < this.end) this.scanCommands(undefined);
    this.pieces.push(this.script.slice(this.copied));
    return { pieces: this.pieces, set: this.set };
  }

  /** Commands up to and over the unquoted character that closes them. */
  private scanCommands(close: ")" | "`" | undefined): void {
    const { reader } = this;
    let parentheses = 0;
    while (this.position < this.end) {
      const character = this.script.charAt(this.position);
      if (character === "<" || character === ">") {
        this.scanRedirection();
      } else if (character === "#" && reader.wordStart.isEmpty) {
        this.position = this.indexOf("\n", this.position);
      } else if (character === "`" && close === "`") {
        this.position++;
        break;
      } else if (character === " " || character === "\t") {
        this.position++;
        reader.endWord();
      } else if (character === "\n") {
        this.position++;
        reader.endCommand(character);
        this.scanHeredocs();
      } else if (";&|(".includes(character)) {
        const separator = this.script.startsWith(character + character, this.position)
          ? character.repeat(2)
          : character;
        // A case's pattern may have a parenthesis in front, and bars inside.
        const isInPattern = reader.inPattern && (character === "(" || character === "|");
        this.position += character === "(" ? 1 : separator.length;
        if (isInPattern) reader.endWord();
        else reader.endCommand(separator);
        if (character === "(" && !isInPattern) parentheses++;
      } else if (character === ")") {
        this.position++;
        reader.endWord();
        if (reader.inPattern) reader.inPattern = false;
        else if (parentheses === 0 && close === ")") break;
        else parentheses = Math.max(0, parentheses - 1);
        reader.endCommand(character);
      } else {
        this.scanWordPart(character, "none");
      }
    }
    reader.endWord();
  }

  /** A piece of a word: a quotation, an expansion, an escape or one character. */
  private scanWordPart(character: string, quoting: Quoting): void {
    if (character === "\\") {
      this.position = Math.min(this.end, this.position + 2);
      this.reader.add(quotationMark);
    } else if (character === "'" && quoting === "none") {
      const close = this.indexOf("'", this.position + 1);
      this.reader.add(quotationMark + this.script.slice(this.position + 1, close));
      this.position = Math.min(this.end, close + 1);
    } else if (character === '"' && quoting === "none") {
      this.scanDoubleQuotes();
    } else if (character === "$") {
      this.scanDollar(quoting);
    } else if (character === "`") {
      this.scanSubstitution("`");
    } else {
      this.position++;
      this.reader.add(character);
    }
  }

  private scanDoubleQuotes(): void {
    this.position++;
    this.reader.add(quotationMark);
    while (this.position < this.end) {
      const character = this.script.charAt(this.position);
      if (character !== '"') {
        this.scanWordPart(character, "double");
        continue;
      }
      this.position++;
      return;
    }
  }

  private scanDollar(quoting: Quoting): void {
    const start = this.position;
    const next = this.script.charAt(start + 1);
    if (next === "{") {
      this.scanBraces(quoting);
    } else if (next === "(") {
      this.position++;
      if (this.script.charAt(start + 2) === "(") this.scanArithmetic();
      else this.scanSubstitution(")");
    } else {
      const name = this.nameAt(start + 1);
      // Else a special or positional parameter, or a mere dollar sign.
      const length = name.length || (/[0-9@*#?$!-]/.test(next) ? 1 : 0);
      this.position = Math.min(this.end, start + 1 + length);
      if (name !== "") this.addReference(start, name, "", quoting);
      this.reader.add(expansionMark);
    }
  }

  private scanBraces(quoting: Quoting): void {
    const start = this.position;
    const name = this.nameAt(start + 2);
    const operatorStart = start + 2 + name.length;
    // Inside of double quotes a single quote is plain text, but for patterns.
    const isPattern = "#%/".includes(this.script.charAt(operatorStart));
    const inner = quoting === "none" || isPattern ? "none" : "double";
    const { copied } = this;
    const pieceCount = this.pieces.length;
    this.position = operatorStart;
    this.nest(() => {
      while (this.position < this.end && this.script.charAt(this.position) !== "}") {
        const character = this.script.charAt(this.position);
        if (character === '"') this.scanDoubleQuotes();
        else this.scanWordPart(character, inner);
      }
    });
    // What is inside goes with the whole, be it replaced or left to the shell.
    this.pieces.length = pieceCount;
    this.copied = copied;
    const isClosed = this.position < this.end;
    const operator = this.script.slice(operatorStart, this.position);
    if (isClosed) this.position++;
    if (/^:?=/.test(operator)) this.set.names.add(name);
    if (isClosed && name !== "") this.addReference(start, name, operator, quoting);
    this.reader.add(expansionMark);
  }

  /** `$(...)` or a pair of backticks, from the parenthesis or the backtick. */
  private scanSubstitution(close: ")" | "`"): void {
    this.position++;
    this.nest(() => this.scanCommands(close));
    this.reader.add(expansionMark);
  }

  /** `$((...))`, from its first parenthesis. */
  private scanArithmetic(): void {
    const start = this.position;
    let parentheses = 0;
    this.nest(() => {
      while (this.position < this.end) {
        const character = this.script.charAt(this.position);
        if (character === "(") parentheses++;
        if (character === ")" && --parentheses === 0) break;
        this.scanWordPart(character, "arithmetic");
      }
    });
    this.position = Math.min(this.end, this.position + 1);
    const text = this.script.slice(start, this.position);
    if (arithmeticAssignment.test(text)) {
      for (const [name] of text.matchAll(/[A-Za-z_][A-Za-z0-9_]*/g)) this.set.names.add(name);
    }
    this.reader.add(expansionMark);
  }

  private scanRedirection(): void {
    const { script, reader } = this;
    reader.startRedirection();
    if (script.startsWith("<<", this.position) && script.charAt(this.position + 2) !== "<") {
      delimiterForm.lastIndex = this.position + 2;
      const [whole = "", dash, written = ""] = delimiterForm.exec(script) ?? [];
      this.position = Math.min(this.end, this.position + 2 + whole.length);
      const delimiter = written.replace(/\\(.)/gs, "$1").replace(/['"]/g, "");
      if (written !== "") {
        this.heredocs.push({ delimiter, isQuoted: /['"\\]/.test(written), stripsTabs: dash === "-" });
      }
      return;
    }
    while ("<>&|".includes(script.charAt(this.position)) && this.position < this.end) this.position++;
    reader.afterRedirection = script.charAt(this.position) !== "(";
  }

  /** The bodies that a line has announced. */
  private scanHeredocs(): void {
    const announced = this.heredocs;
    this.heredocs = [];
    for (const heredoc of announced) {
      const { end } = this;
      const body = this.findBody(heredoc);
      if (!heredoc.isQuoted) {
        this.end = body.end;
        this.nest(() => {
          this.delimiter = heredoc.delimiter;
          while (this.position < this.end) this.scanWordPart(this.script.charAt(this.position), "heredoc");
        });
        this.end = end;
      }
      this.position = body.next;
    }
  }

  /** Where a here-document that starts here ends, and where its delimiter's line does. */
  private findBody({ delimiter, stripsTabs }: HeredocStart): { end: number; next: number } {
    let start = this.position;
    while (start < this.end) {
      const lineEnd = this.indexOf("\n", start);
      const line = this.script.slice(start, lineEnd);
      const next = Math.min(this.end, lineEnd + 1);
      if ((stripsTabs ? line.replace(/^\t+/, "") : line) === delimiter) return { end: start, next };
      start = next;
    }
    return { end: this.end, next: this.end };
  }

  private nest(scan: () => void): void {
    const { reader, delimiter } = this;
    this.reader = new CommandReader(this.set);
    if (++this.depth > maximumDepth) this.position = this.end;
    scan();
    this.depth--;
    this.reader = reader;
    this.delimiter = delimiter;
  }

  private addReference(start: number, name: string, operator: string, quoting: Quoting): void {
    const { reader, delimiter } = this;
    const written = this.script.slice(start, this.position);
    const { splitsWords, wordStart, atStart: atCommandStart } = reader;
    this.pieces.push(this.script.slice(this.copied, start));
    this.pieces.push({
      written,
      name,
      operator,
      quoting,
      start,
      atCommandStart,
      splitsWords,
      wordStart,
      delimiter,
    });
    this.copied = this.position;
  }

  private nameAt(position: number): string {
    variableName.lastIndex = position;
    return variableName.exec(this.script)?.[0] ?? "";
  }

  private indexOf(text: string, from: number): number {
    const found = this.script.indexOf(text, from);
    return found < 0 || found > this.end ? this.end : found;
  }
}
