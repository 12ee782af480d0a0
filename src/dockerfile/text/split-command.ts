import type { Word } from "../words/words.ts";
import { blankCharacters, isSpace, isSpaceAt, spaceCharacters, trimEnd } from "./space.ts";

/** A logical line in three parts: the instruction's name, its flags, and the rest as one text. */
export interface SplitCommand {
  name: Word;
  /** Each `--name` or `--name=value`, quotes and backslashes removed. */
  flags: readonly RawFlag[];
  args: Word;
}

export interface RawFlag extends Word {
  /** Its length in the line, as written. */
  length: number;
}

/** White space, the instruction's name, and white space. */
const beginning = new RegExp(`^([${spaceCharacters}]*)([^${blankCharacters}]*)[${spaceCharacters}]*`);
/** A flag, up to a quote, a backslash or another special character. */
const plainFlag = /[!#-&(-[\]-~]+/y;

/** @param offset the start of `line` in the logical line: the argument of ONBUILD is itself an instruction */
export function splitCommand(line: string, offset = 0): SplitCommand {
  const [before = "", space = "", written = ""] = beginning.exec(line) ?? [];
  const name = { text: trimEnd(written), offset: offset + space.length };
  const { flags, rest } = splitFlags(line, before.length, offset);
  return { name, flags, args: { text: trimEnd(line.slice(rest)), offset: offset + rest } };
}

/** Splits off the flags: the first words that start with `--`. A bare `--` ends them. `rest` is the offset of what follows them. */
function splitFlags(line: string, from: number, offset: number): { flags: RawFlag[]; rest: number } {
  const flags: RawFlag[] = [];
  let position = from;
  while (line.startsWith("--", position)) {
    const start = position;
    plainFlag.lastIndex = start;
    let text = plainFlag.exec(line)?.[0] ?? "";
    position += text.length;
    let quote = "";
    for (; position < line.length; position++) {
      let character = line.charAt(position);
      if (quote === "" && isSpace(character)) break;
      if (quote === "" && (character === "'" || character === '"')) {
        quote = character;
        continue;
      }
      if (character === quote) {
        quote = "";
        continue;
      }
      // In flags the escape character is always a backslash, whatever the escape directive says.
      if (character === "\\") character = line.charAt(++position);
      text += character;
    }
    const length = position - start;
    position = skipSpace(line, position);
    if (text === "--") break;
    flags.push({ text, offset: offset + start, length });
  }
  return { flags, rest: position };
}

function skipSpace(line: string, from: number): number {
  let position = from;
  while (position < line.length && isSpaceAt(line, position)) position++;
  return position;
}
