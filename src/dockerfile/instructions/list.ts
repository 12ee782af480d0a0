import { parseStringArray } from "../json.ts";
import { placeOf, type Statement } from "../statement.ts";
import { splitAtBlanks, type Word } from "../word-list.ts";

/** The words of a JSON array of strings, or else of a text split at blanks. Words of an array all stand where it does. */
export function parseList(statement: Statement): { words: Word[]; isArray: boolean } {
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
      return { words: [], isArray: true };
    case "not-an-array":
      return { words: splitAtBlanks(args.text, args.offset), isArray: false };
  }
}
