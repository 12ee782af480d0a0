import { HclError } from "../hcl-error.ts";
import { jsonTextOf, parseJsonText, valueOfJson } from "../values/json-text.ts";
import { stringType, type Type } from "../values/types.ts";
import { type HclValue, listValue, objectValue, stringValue } from "../values/value.ts";
import { any, define, defineText, type FunctionTable, orNull, text, textIn } from "./define.ts";

export const encodingFunctions: FunctionTable = {
  base64encode: defineText(["str"], (value) => Buffer.from(value).toString("base64")),
  base64decode: defineText(["str"], (value) => decodeText(decodeBase64(value))),
  urlencode: defineText(["str"], (value) =>
    encodeURIComponent(value.toWellFormed())
      .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll("%20", "+"),
  ),
  jsonencode: define([orNull(any("val"))], ([value]) =>
    stringValue(value === undefined ? "" : jsonTextOf(value)),
  ),
  jsondecode: define([text("str")], ([value]) => valueOfJson(parseJsonText(textIn(value)))),
  csvdecode: define([text("str")], ([value]) => decodeCsv(textIn(value))),
};

export function decodeBase64(value: string): Buffer {
  const compact = value.replace(/[\r\n]/g, "");
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(compact))
    throw new HclError("the text is not base64");
  return Buffer.from(compact, "base64");
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new HclError("what the text stands for is not UTF-8");
  }
}

function decodeCsv(source: string): HclValue {
  const [headers, ...rows] = csvRows(source);
  if (headers === undefined) throw new HclError("the line with the names of the columns is missing");
  const twice = headers.find((name, index) => headers.indexOf(name) !== index);
  if (twice !== undefined) throw new HclError(`two columns are called ${JSON.stringify(twice)}`);
  const attributes = new Map(headers.toSorted().map((name): [string, Type] => [name, stringType]));
  return listValue(
    { kind: "object", attributes },
    rows.map((row, index) => {
      if (row.length !== headers.length)
        throw new HclError(
          `record ${index + 2} has ${row.length} fields, and the first one ${headers.length}`,
        );
      return objectValue(row.map((cell, column) => [headers[column] ?? "", stringValue(cell)]));
    }),
  );
}

const csvField = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y;

/** Divides CSV into fields, as Go does: empty lines are left out, and a quote is only around a whole field, or doubled in it. */
function csvRows(source: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;
  while (at < source.length || row.length > 0) {
    csvField.lastIndex = at;
    const match = csvField.exec(source);
    if (match === null) throw new HclError(`invalid CSV in line ${source.slice(0, at).split("\n").length}`);
    const [whole, quotedField, bare = "", end] = match;
    at += whole.length;
    const isEmptyLine = row.length === 0 && quotedField === undefined && bare === "" && end !== ",";
    if (!isEmptyLine) row.push(quotedField?.replaceAll('""', '"').replaceAll("\r\n", "\n") ?? bare);
    if (end === ",") continue;
    if (row.length > 0) rows.push(row);
    row = [];
  }
  return rows;
}
