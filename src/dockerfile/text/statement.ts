import type { Flag, HereDocument, LineRange } from "../instruction.ts";
import type { Findings } from "../problems/problem.ts";
import { splitAtBlanks, type Word } from "../words/words.ts";
import { parseStringArray } from "./json.ts";
import type { LogicalLine } from "./source.ts";
import { type RawFlag, type SplitCommand, splitCommand } from "./split-command.ts";

/** A problem at a place in the statement, or of the whole statement. */
export interface StatementProblem {
  message: string;
  expected?: string;
  at?: { offset: number; length: number } | undefined;
}

/** A logical line, split into name, flags and arguments, from which an instruction is parsed. */
export class Statement {
  /** The instruction's name in upper case, and as written. */
  readonly name: string;
  readonly writtenName: Word;
  readonly original: string;
  readonly title: string;
  readonly rawFlags: readonly RawFlag[];
  readonly args: Word;
  readonly escape: string;
  private readonly line: LogicalLine;
  private readonly findings: Findings;

  constructor(
    line: LogicalLine,
    escapeCharacter: string,
    findings: Findings,
    command: SplitCommand = splitCommand(line.text),
    { original, title }: { original: string; title: string } = line,
  ) {
    this.name = command.name.text.toUpperCase();
    this.writtenName = command.name;
    this.original = original;
    this.title = title;
    this.rawFlags = command.flags;
    this.args = command.args;
    this.escape = escapeCharacter;
    this.line = line;
    this.findings = findings;
  }

  get range(): LineRange {
    return this.line.range;
  }

  get heredocs(): readonly HereDocument[] {
    return this.line.heredocs;
  }

  get heredocText(): string {
    return this.line.heredocText;
  }

  /** Returns the statement inside an ONBUILD. */
  inner(): Statement {
    const { text, offset } = this.args;
    return new Statement(this.line, this.escape, this.findings, splitCommand(text, offset), {
      original: text,
      title: text,
    });
  }

  /**
   * Returns the words of a JSON array of strings, all with the array's place, or else the arguments split at blanks. Reports an
   * array of other values and returns `undefined`.
   */
  list(): { words: Word[]; isArray: boolean } | undefined {
    const { text, offset } = this.args;
    const array = parseStringArray(text);
    switch (array.kind) {
      case "strings":
        return { words: array.words.map((word) => ({ text: word, offset })), isArray: true };
      case "not-strings":
        this.report({
          message: "when using JSON array syntax, arrays must be comprised of strings only",
          expected: 'every element in double quotes, as in ["one", "two"]',
          at: placeOf(this.args),
        });
        return undefined;
      case "not-an-array":
        return { words: splitAtBlanks(text, offset), isArray: false };
    }
  }

  reportNoArguments(expected: string): void {
    const message = `${this.name} requires at least one argument`;
    this.report({ message, expected, at: placeOf(this.writtenName) });
  }

  report({ message, expected, at }: StatementProblem): void {
    this.findings.addProblem({
      message,
      range: this.range,
      ...(at === undefined ? {} : { culprit: this.line.map.locate(at.offset, at.length) }),
      ...(expected === undefined ? {} : { expected }),
    });
  }

  /** Returns the place of a flag with a value. */
  placeOfFlag(name: string): StatementProblem["at"] {
    return this.rawFlags.find(({ text }) => text.startsWith(`--${name}=`));
  }

  warn(rule: string, message: string): void {
    this.findings.addWarning({ rule, message, range: this.range });
  }
}

/** Returns a word's place, for a complaint about it. */
export function placeOf(word: Word): { offset: number; length: number } {
  return { offset: word.offset, length: word.text.length };
}

/** Returns the fields that all instructions have. */
export function baseOf<Name extends string>(
  { range, original, title, args, heredocs }: Statement,
  name: Name,
  flags: readonly Flag[],
) {
  return { name, range, original, title, flags, args: args.text, heredocs };
}
