import type { Command } from "../instruction.ts";
import { parseStringArray } from "../text/json.ts";
import { placeOf, type Statement } from "../text/statement.ts";
import { splitWords, type Word } from "../words/word-list.ts";

/**
 * JSON form where the text is a JSON array of strings, else shell form, as Docker falls back. An array of other things
 * is reported. `words` are the arguments of the array, or the shell's words with their quotes.
 */
export function parseCommand(statement: Statement, args: Word): { command: Command; words: string[] } {
  const array = parseStringArray(args.text);
  switch (array.kind) {
    case "strings":
      return { command: { form: "exec", words: array.words }, words: array.words };
    case "not-strings":
      statement.report({
        message: "when using JSON array syntax, arrays must be comprised of strings only",
        expected: 'every element in double quotes, as in ["program", "argument"]',
        at: placeOf(args),
      });
      return { command: { form: "exec", words: [args.text] }, words: [args.text] };
    case "not-an-array": {
      const words = splitTexts(args, statement.escape);
      return { command: { form: "shell", line: args.text }, words };
    }
  }
}

function splitTexts({ text, offset }: Word, escapeCharacter: string): string[] {
  // Most command lines have no quotes; these are long and many, so they are split by the engine itself.
  if (text !== "" && !/['"\\`\u0080-\uffff]/.test(text)) return text.split(/\s+/);
  return splitWords(text, offset, escapeCharacter).map((word) => word.text);
}
