import { readFlags } from "../flags.ts";
import type { ArgInstruction, EnvInstruction, LabelInstruction } from "../instruction.ts";
import { baseOf, placeOf, type Statement } from "../text/statement.ts";
import { splitWords, type Word } from "../words/word-list.ts";

/** `ENV KEY=VALUE ...`, or `ENV KEY VALUE` as it was written long ago. */
export function parseEnv(statement: Statement): EnvInstruction {
  const flags = readFlags(statement);
  const { pairs, words } = parsePairs(statement);
  return { ...baseOf(statement, "ENV", words, flags.list), pairs };
}

/** `LABEL KEY=VALUE ...`: the same forms as ENV. */
export function parseLabel(statement: Statement): LabelInstruction {
  const flags = readFlags(statement);
  const { pairs, words } = parsePairs(statement);
  return { ...baseOf(statement, "LABEL", words, flags.list), pairs };
}

/** `ARG NAME[=DEFAULT] ...` */
export function parseArg(statement: Statement): ArgInstruction {
  const flags = readFlags(statement);
  const words = splitWords(statement.args.text, statement.args.offset, statement.escape);
  if (words.length === 0) reportNoArguments(statement);
  const declarations = words.map((word) => {
    const { key, value } = splitPair(word.text);
    if (key === "") reportBlankName(statement, word);
    return { key, value };
  });
  return {
    ...baseOf(
      statement,
      "ARG",
      words.map((word) => word.text),
      flags.list,
    ),
    declarations,
  };
}

function parsePairs(statement: Statement): { pairs: { key: string; value: string }[]; words: string[] } {
  const { name, args } = statement;
  const words = splitWords(args.text, args.offset, statement.escape);
  const [first] = words;
  const texts = words.map((word) => word.text);
  if (first === undefined) {
    reportNoArguments(statement);
    return { pairs: [], words: texts };
  }
  if (!first.text.includes("=")) return { pairs: parseLegacyPair(statement), words: texts };
  const pairs = words.map((word) => {
    const { key, value } = splitPair(word.text);
    if (value === undefined) {
      const message = `Syntax error - can't find = in "${word.text}". Must be of the form: name=value`;
      const expected = `${name} name=value ..., with quotes or an escape character where a value has blanks`;
      statement.report({ message, expected, at: placeOf(word) });
    } else if (key === "") {
      reportBlankName(statement, word);
    }
    return { key, value: value ?? "" };
  });
  return { pairs, words: texts };
}

/** `KEY VALUE`, where everything behind the key is its value. */
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

function reportNoArguments(statement: Statement): void {
  const { name, writtenName } = statement;
  const expected = `${name} name=value`;
  statement.report({ message: `${name} requires at least one argument`, expected, at: placeOf(writtenName) });
}

function reportBlankName(statement: Statement, word: Word): void {
  const { name } = statement;
  statement.report({
    message: `${name} names can not be blank`,
    expected: `${name} name=value`,
    at: placeOf(word),
  });
}
