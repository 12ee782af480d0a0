import type { Findings } from "./findings.ts";
import type { HereDocument, LineRange } from "./instruction.ts";
import type { LogicalLine } from "./source.ts";
import { type RawFlag, splitCommand } from "./split-command.ts";
import type { Word } from "./word-list.ts";

/** A logical line on its way to become an instruction: taken apart, its words not understood yet. */
export interface Statement {
  /** The instruction's name in upper case, and as written. */
  name: string;
  writtenName: Word;
  original: string;
  rawFlags: readonly RawFlag[];
  args: Word;
  escape: string;
  range: LineRange;
  heredocs: readonly HereDocument[];
  heredocText: string;
  report(problem: Complaint): void;
  warn(rule: string, message: string): void;
}

/** A problem at a place of the statement; without one the whole of it is meant. */
export interface Complaint {
  message: string;
  expected?: string;
  at?: { offset: number; length: number };
}

export function readStatement(line: LogicalLine, escapeCharacter: string, findings: Findings): Statement {
  const { name, flags, args } = splitCommand(line.text);
  return {
    name: name.text.toUpperCase(),
    writtenName: name,
    original: line.text.trim(),
    rawFlags: flags,
    args,
    escape: escapeCharacter,
    range: line.range,
    heredocs: line.heredocs,
    heredocText: line.heredocText,
    report({ message, expected, at }) {
      const culprit = at === undefined ? {} : { culprit: line.locate(at.offset, at.length) };
      findings.addProblem({
        message,
        range: line.range,
        ...culprit,
        ...(expected === undefined ? {} : { expected }),
      });
    },
    warn: (rule, message) => findings.addWarning({ rule, message, range: line.range }),
  };
}

/** The statement inside of an ONBUILD. */
export function readInnerStatement(outer: Statement): Statement {
  const { name, flags, args } = splitCommand(outer.args.text, outer.args.offset);
  const inner = {
    name: name.text.toUpperCase(),
    writtenName: name,
    original: outer.args.text,
    rawFlags: flags,
    args,
  };
  return { ...outer, ...inner };
}

/** Where a word stands, for a complaint about it. */
export function placeOf(word: Word): { offset: number; length: number } {
  return { offset: word.offset, length: word.text.length };
}

/** The fields that all instructions have. */
export function baseOf<Name extends string>(
  statement: Statement,
  name: Name,
  words: readonly string[],
  flags: readonly { name: string; value: string | undefined }[],
) {
  const { range, original, heredocs } = statement;
  return { name, range, original, flags, words, heredocs };
}
