import { asId, asNumber } from "../../service/http/json.ts";
import { isSha256 } from "../../sha256.ts";

/** A field of an index's entries, as it stands in JSON; `undefined` for what it can't be. */
export type Field<Value> = (value: unknown) => Value | undefined;

export const id: Field<string> = asId;
export const text: Field<string> = (value) => (typeof value === "string" ? value : undefined);
export const number: Field<number> = (value) => {
  const found = asNumber(value);
  return found !== undefined && found >= 0 ? found : undefined;
};
export const sha256: Field<string> = (value) => (isSha256(value) ? value : undefined);

export function orNull<Value>(field: Field<Value>): Field<Value | null> {
  return (value) => (value === null ? null : field(value));
}

export type Fields = Readonly<Record<string, Field<string | number | null>>>;

/** What the fields come to together. */
export type EntryOf<Of extends Fields> = {
  -readonly [Name in keyof Of]: Exclude<ReturnType<Of[Name]>, undefined>;
};
