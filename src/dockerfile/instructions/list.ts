import { parseStringArray } from "../text/json.ts";
import { placeOf, type Statement } from "../text/statement.ts";
import { splitAtBlanks, type Word } from "../words/word-list.ts";

/**
 * The words of a JSON array of strings, which all stand where the array does, or else of a text split at blanks.
 * Undefined where it is an array of other things, which is reported.
 */
export function parseList(statement: Statement): { words: Word[]; isArray: boolean } | undefined {
  const { args } = statement;
  const array = parseStringArray(args.text);
  switch (array.kind) {
    case "strings":
      return { words: array.words.map((text) => ({ text, offset: args.offset })), isArray: true };
    case "not-strings":
      statement.report({
        message: "when using JSON array syntax, arrays must be comprised of strings only",
        expected: 'every element in double quotes, as in ["one", "two"]',
        at: placeOf(args),
      });
      return undefined;
    case "not-an-array":
      return { words: splitAtBlanks(args.text, args.offset), isArray: false };
  }
}
