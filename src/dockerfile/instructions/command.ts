import type { Command } from "../instruction.ts";
import { parseStringArray } from "../text/json.ts";
import { placeOf, type Statement } from "../text/statement.ts";
import type { Word } from "../words/words.ts";

/** Parses a command: a JSON array of strings, else shell form, to which Docker falls back. Reports an array of other values. */
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

/** True for a command that Docker treats as missing. */
export function isEmptyCommand(command: Command): boolean {
  return command.form === "exec" ? command.words.length === 0 : command.line === "";
}
