/** Makes Go's values of JSON, by the types that a program in Go has for it. */

import { goTime } from "./time.ts";
import { fromJson, type GoField, GoMap, GoNil, GoStruct, GoText, type GoValue } from "./values.ts";

/** A type of Go: reads what JSON has, or its zero value of `undefined`. */
export type GoType = (json: unknown) => GoValue;

export const goString: GoType = (json) => (typeof json === "string" ? json : "");
export const integer: GoType = (json) => (Number.isSafeInteger(json) ? BigInt(json as number) : 0n);
export const boolean: GoType = (json) => json === true;
export const anything: GoType = fromJson;

/** `[]byte`, which is base64 in JSON. */
export const bytes: GoType = (json) =>
  typeof json === "string"
    ? new GoText(Buffer.from(json, "base64").toString("latin1"), { type: "[]uint8", methods: {}, json })
    : new GoNil("slice", "[]uint8");

/** `*time.Time` */
export const timePointer: GoType = (json) =>
  (typeof json === "string" ? goTime(json) : undefined) ?? new GoNil("pointer", "*time.Time");

/** A digest of the package that Docker uses. */
export const digest: GoType = (json) => {
  const written = typeof json === "string" ? json : "";
  const [algorithm = "", encoded = ""] = written.split(":");
  return new GoText(written, {
    type: "digest.Digest",
    methods: {
      Algorithm: () => algorithm,
      Encoded: () => encoded,
      Hex: () => encoded,
      String: () => written,
    },
  });
};

export function sliceOf(type: GoType, name: string): GoType {
  return (json) => (Array.isArray(json) ? json.map(type) : new GoNil("slice", `[]${name}`));
}

export function goMapOf(type: GoType, name: string): GoType {
  return (json) =>
    isRecord(json)
      ? new GoMap(
          Object.entries(json).map(([key, value]) => [key, type(value)]),
          type(undefined),
        )
      : new GoNil("map", `map[string]${name}`);
}

/** A field: its type, its key in JSON (`undefined`: an embedded struct), and whether that is left out if it is empty. */
type StructFields = Readonly<Record<string, [type: GoType, key: string | undefined, omits?: "omitempty"]>>;

export function struct(name: string, fields: StructFields, isPointer = false): GoType {
  return (json) => {
    if (isPointer && !isRecord(json)) return new GoNil("pointer", `*${name}`);
    const record = isRecord(json) ? json : {};
    const made = Object.entries(fields).map(
      ([field, [type, key, omits]]): GoField => ({
        ...{ name: field, key, omitsEmpty: omits !== undefined },
        value: type(key === undefined ? record : record[key]),
      }),
    );
    return new GoStruct(name, made, { isPointer });
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
