import type { Command } from "../instruction.ts";
import { parseStringArray } from "../text/json.ts";
import { placeOf, type Statement } from "../text/statement.ts";
import type { Word } from "../words/word-list.ts";

/** JSON form where the text is a JSON array of strings, else shell form, as Docker falls back. An array of other things is reported. */
export function parseCommand(statement: Statement, args: Word): Command {
  const array = parseStringArray(args.text);
  switch (array.kind) {
    case "strings":
      return { form: "exec", words: array.words };
    case "not-strings":
      statement.report({
        message: "when using JSON array syntax, arrays must be comprised of strings only",
        expected: 'every element in double quotes, as in ["program", "argument"]',
        at: placeOf(args),
      });
      return { form: "exec", words: [args.text] };
    case "not-an-array":
      return { form: "shell", line: args.text };
  }
}

/** True for what Docker takes for no command at all. */
export function isEmptyCommand(command: Command): boolean {
  return command.form === "exec" ? command.words.length === 0 : command.line === "";
}
