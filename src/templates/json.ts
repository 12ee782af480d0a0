import { goJson } from "../go/json.ts";
import { GoMap, GoNil, GoStruct, GoText, type GoValue, isTruthy } from "./values.ts";

/** Writes a value as Go's `json.MarshalIndent` does, with two spaces. */
export function indentedJson(value: GoValue): string {
  return write(value, "\n", goJson);
}

/** Writes a value as Go's encoder does that leaves characters of HTML as they are. */
export function plainJson(value: GoValue): string {
  return write(value, "", JSON.stringify);
}

/** @param newline a line feed with the indentation of the line that the value begins in, or nothing */
function write(value: GoValue, newline: string, quote: (value: unknown) => string): string {
  if (value === null || value instanceof GoNil) return "null";
  if (value instanceof GoText) return quote(value.json);
  if (typeof value === "bigint") return String(value);
  const inner = newline === "" ? "" : `${newline}  `;
  const members = Array.isArray(value)
    ? value.map((each) => write(each, inner, quote))
    : membersOf(value)?.map(
        ([key, each]) => `${quote(key)}:${newline === "" ? "" : " "}${write(each, inner, quote)}`,
      );
  if (members === undefined) return quote(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return members.length === 0
    ? `${open}${close}`
    : `${open}${inner}${members.join(`,${inner}`)}${newline}${close}`;
}

function membersOf(value: GoValue): [string, GoValue][] | undefined {
  if (value instanceof GoMap) return [...value.entries];
  if (!(value instanceof GoStruct)) return undefined;
  return value.fields.flatMap((field): [string, GoValue][] => {
    if (field.key === undefined) return membersOf(field.value) ?? [];
    // A struct is never empty.
    const isLeftOut = field.omitsEmpty && !isTruthy(field.value);
    return isLeftOut ? [] : [[field.key, field.value]];
  });
}
