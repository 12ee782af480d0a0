import { readFlags } from "../flags.ts";
import type { ArgInstruction, EnvInstruction, LabelInstruction } from "../instruction.ts";
import { baseOf, placeOf, type Statement, type StatementProblem } from "../text/statement.ts";
import { splitTexts, splitWords } from "../words/words.ts";

/** Parses `ENV KEY=VALUE ...`, or the legacy form `ENV KEY VALUE`. */
export function parseEnv(statement: Statement): EnvInstruction {
  const flags = readFlags(statement);
  return { ...baseOf(statement, "ENV", flags.list), pairs: parsePairs(statement) };
}

/** Parses `LABEL KEY=VALUE ...`, with the same forms as ENV. */
export function parseLabel(statement: Statement): LabelInstruction {
  const flags = readFlags(statement);
  return { ...baseOf(statement, "LABEL", flags.list), pairs: parsePairs(statement) };
}

/** Parses `ARG NAME[=DEFAULT] ...`. */
export function parseArg(statement: Statement): ArgInstruction {
  const flags = readFlags(statement);
  const words = splitTexts(statement.args.text, statement.escape);
  if (words.length === 0) statement.reportNoArguments(`${statement.name} name=value`);
  const declarations: ArgInstruction["declarations"][number][] = [];
  for (const word of words) {
    const declaration = splitPair(word);
    if (declaration.key === "") reportBlankName(statement, placeOfWord(statement, declarations.length));
    declarations.push(declaration);
  }
  return { ...baseOf(statement, "ARG", flags.list), declarations };
}

function parsePairs(statement: Statement): { key: string; value: string }[] {
  const { name, args } = statement;
  const words = splitTexts(args.text, statement.escape);
  const [first] = words;
  if (first === undefined) {
    statement.reportNoArguments(`${name} name=value`);
    return [];
  }
  if (!first.includes("=")) return parseLegacyPair(statement);
  const pairs: { key: string; value: string }[] = [];
  for (const word of words) {
    const { key, value } = splitPair(word);
    if (value === undefined) {
      const message = `Syntax error - can't find = in "${word}". Must be of the form: name=value`;
      const expected = `${name} name=value ..., with quotes or an escape character where a value has blanks`;
      const at = placeOfWord(statement, pairs.length);
      statement.report({ message, expected, at });
    } else if (key === "") {
      reportBlankName(statement, placeOfWord(statement, pairs.length));
    }
    pairs.push({ key, value: value ?? "" });
  }
  return pairs;
}

/** Returns a word's place. Words are located only for a message. */
function placeOfWord({ args, escape }: Statement, index: number): StatementProblem["at"] {
  const word = splitWords(args.text, args.offset, escape)[index];
  return word && placeOf(word);
}

/** Parses `KEY VALUE`: everything after the key is its value. */
function parseLegacyPair(statement: Statement): { key: string; value: string }[] {
  const { name, args } = statement;
  const [, key = "", value] = /^([^\t\v\f\r ]*)(?:[\t\v\f\r ]+(.*))?$/s.exec(args.text) ?? [];
  if (value === undefined) {
    statement.report({
      message: `${name} must have two arguments`,
      expected: `${name} name=value`,
      at: placeOf(args),
    });
    return [];
  }
  const message = `"${name} key=value" should be used instead of legacy "${name} key value" format`;
  statement.warn("LegacyKeyValueFormat", message);
  return [{ key, value }];
}

function splitPair(text: string): { key: string; value: string | undefined } {
  const separator = text.indexOf("=");
  if (separator < 0) return { key: text, value: undefined };
  return { key: text.slice(0, separator), value: text.slice(separator + 1) };
}

function reportBlankName(statement: Statement, at: StatementProblem["at"]): void {
  const { name } = statement;
  statement.report({ message: `${name} names can not be blank`, expected: `${name} name=value`, at });
}
