/** `--format` of docker's commands. */
import { BoughError, usageError, withPrefix } from "../../errors.ts";
import { CallError } from "../../templates/call-error.ts";
import { executeTemplate } from "../../templates/execute.ts";
import { builtinFunctions, type Functions, ofTexts, requireText } from "../../templates/functions.ts";
import { indentedJson, plainJson } from "../../templates/json.ts";
import type { Template } from "../../templates/nodes.ts";
import { parseTemplate } from "../../templates/parse.ts";
import { TemplateError } from "../../templates/template-error.ts";
import { GoStruct, type GoValue } from "../../templates/values.ts";

/** The fields of a row, and those that have another text in a table. */
export interface FormattedRow {
  plain: Readonly<Record<string, string>>;
  inTable: Readonly<Record<string, string>>;
}

/** Formats rows by a template, or in a table by `table TEMPLATE`, as docker's lists are formatted. */
export function formatRows(
  format: string,
  headers: Readonly<Record<string, string>>,
  rows: readonly FormattedRow[],
  /** The type that messages about fields name. */
  type = "*commands.lsContext",
): string {
  const isTable = format.startsWith("table");
  const text = (isTable ? format.slice("table".length) : format)
    .replace(/^ +| +$/g, "")
    .replaceAll("\\t", "\t")
    .replaceAll("\\n", "\n");
  const template = withTemplateErrors(() => readTemplate(text, listFunctions));
  const line = (fields: Readonly<Record<string, string>>) => {
    const values = Object.entries(fields).map(([name, value]) => ({
      name,
      key: name,
      omitsEmpty: false,
      value,
    }));
    let shown = "";
    withTemplateErrors(() =>
      writeTemplate(template, new GoStruct(type, values), listFunctions, (part) => {
        shown += part;
      }),
    );
    return `${shown}\n`;
  };
  const lines = rows.map(({ plain, inTable }) => line(isTable ? { ...plain, ...inTable } : plain));
  return isTable ? aligned([line(headers), ...lines].join("")) : lines.join("");
}

function withTemplateErrors<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw withPrefix(error, "template parsing error");
  }
}

/** Replaces tabs by aligned columns, as docker does. */
function aligned(text: string): string {
  const rows = text.split("\n").map((row) => row.split("\t"));
  const widths = rows.reduce<number[]>(
    (known, row) =>
      row
        .slice(0, -1)
        .map((cell, at) => Math.max(known[at] ?? 10, [...cell].length + 3))
        .concat(known.slice(row.length - 1)),
    [],
  );
  return rows
    .map((row) =>
      row.map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0))).join(""),
    )
    .join("\n");
}

const requireList = (value: GoValue): string[] => {
  if (Array.isArray(value)) return value.map(requireText);
  throw new CallError("wrong type for value; expected []string");
};

/** Template functions of docker's lists. */
const listFunctions: Functions = {
  ...builtinFunctions,
  json: { min: 1, call: ([value = null]) => plainJson(value) },
  split: ofTexts(2, (text, separator) => text.split(separator)),
  join: { min: 2, call: ([list = null, separator = ""]) => requireList(list).join(requireText(separator)) },
  title: ofTexts(1, (text) => text.replace(/(?<![\p{L}\p{N}_'])\p{L}/gu, (letter) => letter.toUpperCase())),
  lower: ofTexts(1, (text) => text.toLowerCase()),
  upper: ofTexts(1, (text) => text.toUpperCase()),
  pad: {
    min: 3,
    call([value = "", before = 0n, after = 0n]) {
      const text = requireText(value);
      return text === "" ? "" : " ".repeat(Number(before)) + text + " ".repeat(Number(after));
    },
  },
  truncate: {
    min: 2,
    call: ([value = "", length = 0n]) =>
      Buffer.from(requireText(value)).subarray(0, Number(length)).toString(),
  },
};

/** Template functions of `imagetools inspect`. */
export const imageFunctions: Functions = {
  ...builtinFunctions,
  json: { min: 1, call: ([value = null]) => indentedJson(value) },
};

export function readTemplate(text: string, functions: Functions): Template {
  try {
    return parseTemplate(text, new Set(Object.keys(functions)));
  } catch (error) {
    if (error instanceof TemplateError) throw usageError(error.message);
    throw error;
  }
}

export function writeTemplate(
  template: Template,
  data: GoValue,
  functions: Functions,
  write: (text: string) => void,
): void {
  try {
    executeTemplate(template, data, functions, write);
  } catch (error) {
    if (error instanceof TemplateError) throw new BoughError(error.message, { cause: error });
    throw error;
  }
}
