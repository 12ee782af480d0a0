import { posix } from "node:path";
import { HclError } from "../hcl-error.ts";
import { trimSpaceEnd, trimSpaceStart } from "../syntax/texts.ts";
import { compareTexts, type HclValue, integerValue, stringList, stringValue } from "../values/value.ts";
import {
  charactersOf,
  define,
  defineText,
  defineVariadic,
  type FunctionTable,
  integerIn,
  number,
  text,
  textIn,
  texts,
  textsIn,
} from "./define.ts";

export const stringFunctions: FunctionTable = {
  upper: defineText(["str"], (value) => mapCharacters(value, (each) => each.toUpperCase())),
  lower: defineText(["str"], (value) => mapCharacters(value, (each) => each.toLowerCase())),
  title: defineText(["str"], titleOf),
  reverse: defineText(["str"], (value) => charactersOf(value).reverse().join("")),
  strlen: define([text("str")], ([value]) => integerValue(charactersOf(textIn(value)).length)),
  substr: define([text("str"), number("offset"), number("length")], (given) => stringValue(substring(given))),
  join: defineVariadic([text("separator")], texts("lists"), join),
  sort: define([texts("list")], (given) => stringList(textsIn(given, 0).sort(compareTexts))),
  split: define([text("separator"), text("str")], ([separator, value]) =>
    stringList(splitText(textIn(value), textIn(separator))),
  ),
  chomp: defineText(["str"], (value) => value.slice(0, value.length - trailingBreaks(value))),
  indent: define([number("spaces"), text("str")], (given) => {
    const spaces = integerIn(given, 0);
    if (spaces < 0 || spaces > maxIndent)
      throw new HclError(`a number of spaces from 0 to ${maxIndent} is required`);
    return stringValue(textIn(given[1]).replaceAll("\n", `\n${" ".repeat(spaces)}`));
  }),
  trim: defineText(["str", "cutset"], trimCharacters),
  trimspace: defineText(["str"], (value) => trimSpaceEnd(trimSpaceStart(value))),
  trimprefix: defineText(["str", "prefix"], (value, prefix = "") =>
    value.startsWith(prefix) ? value.slice(prefix.length) : value,
  ),
  trimsuffix: defineText(["str", "suffix"], (value, suffix = "") =>
    value.endsWith(suffix) ? value.slice(0, value.length - suffix.length) : value,
  ),
  replace: defineText(["str", "substr", "replace"], (value, part = "", replacement = "") =>
    part === "" ? ["", ...value, ""].join(replacement) : value.replaceAll(part, () => replacement),
  ),
  sanitize: defineText(["name"], (value) => value.replace(/[^a-zA-Z0-9_-]/gu, "_")),
  basename: defineText(["path"], (value) => posix.basename(value) || (value === "" ? "." : "/")),
  dirname: defineText(["path"], directoryOf),
};

const maxIndent = 1000;

/** Changes each character separately. One whose other case has several characters stays, as in Go: `ß` has no upper case there. */
function mapCharacters(value: string, change: (character: string) => string): string {
  return Array.from(value, (character) => {
    const changed = change(character);
    if (character === "İ" && changed !== character) return "i";
    return [...changed].length === 1 ? changed : character;
  }).join("");
}

function titleOf(value: string): string {
  let isStart = true;
  return Array.from(value, (character) => {
    const shown = isStart ? mapCharacters(character, (each) => each.toUpperCase()) : character;
    isStart = isSeparator(character);
    return shown;
  }).join("");
}

function isSeparator(character: string): boolean {
  return character <= "\x7f" ? !/\w/.test(character) : /[\s\u0085]/.test(character);
}

function substring(given: readonly HclValue[]): string {
  const characters = charactersOf(textIn(given[0]));
  const [offset, length] = [integerIn(given, 1), integerIn(given, 2)];
  const start = offset < 0 ? offset + characters.length : offset;
  if (length === 0 && offset >= 0) return "";
  const rest = characters.slice(Math.max(0, start));
  // With a negative offset, a length of 0 is as if there were none.
  return (length <= 0 ? rest : rest.slice(0, length)).join("");
}

function join(given: readonly HclValue[]): HclValue {
  if (given.length < 2) throw new HclError("at least one list is required");
  const all = given.slice(1).flatMap((_, index) => textsIn(given, index + 1));
  return stringValue(all.join(textIn(given[0])));
}

function splitText(value: string, separator: string): string[] {
  return separator === "" ? [...value] : value.split(separator);
}

function trailingBreaks(value: string): number {
  let end = value.length;
  while (value[end - 1] === "\n" || value[end - 1] === "\r") end -= 1;
  return value.length - end;
}

function trimCharacters(value: string, cutset = ""): string {
  const removed = new Set(cutset);
  const characters = [...value];
  let [start, end] = [0, characters.length];
  while (start < end && removed.has(characters[start] ?? "")) start += 1;
  while (end > start && removed.has(characters[end - 1] ?? "")) end -= 1;
  return characters.slice(start, end).join("");
}

function directoryOf(path: string): string {
  const directory = posix.normalize(path.slice(0, path.lastIndexOf("/") + 1) || ".");
  return directory.length > 1 ? directory.replace(/\/$/, "") : directory;
}
