import { isDigest } from "../../image/digest.ts";
import { asId, asNumber } from "../../service/http/json.ts";
import { isSha256 } from "../../sha256.ts";

/** Reads a field of an index's entry from JSON; returns `undefined` for an invalid value. */
export type Field<Value> = (value: unknown) => Value | undefined;

export const id: Field<string> = asId;
export const text: Field<string> = (value) => (typeof value === "string" ? value : undefined);
export const number: Field<number> = (value) => {
  const found = asNumber(value);
  return found !== undefined && found >= 0 ? found : undefined;
};
/** Milliseconds since the epoch, as a Date can hold them. */
export const time: Field<number> = (value) => {
  const found = number(value);
  return found !== undefined && found <= 8.64e15 ? found : undefined;
};
export const sha256: Field<string> = (value) => (isSha256(value) ? value : undefined);
export const digest: Field<string> = (value) => (isDigest(value) ? value : undefined);

export function orNull<Value>(field: Field<Value>): Field<Value | null> {
  return (value) => (value === null ? null : field(value));
}

export type Fields = Readonly<Record<string, Field<string | number | null>>>;

/** The entry that the fields make up. */
export type EntryOf<Of extends Fields> = {
  -readonly [Name in keyof Of]: Exclude<ReturnType<Of[Name]>, undefined>;
};
