/** The values of templates: what Go has, over plain data. */

/** `bigint` is an integer of Go, `number` a floating-point number, as JSON without a type gives them. */
export type GoValue =
  | null
  | boolean
  | string
  | bigint
  | number
  | readonly GoValue[]
  | GoMap
  | GoStruct
  | GoNil
  | GoText;

/** A nil of a known type. `null` is a nil without one. */
export class GoNil {
  readonly kind: "pointer" | "slice" | "map";
  /** Go's name of the type: `*v1.Platform`. */
  readonly type: string;

  constructor(kind: GoNil["kind"], type: string) {
    this.kind = kind;
    this.type = type;
  }
}

/** A map with strings as keys. */
export class GoMap {
  readonly entries: ReadonlyMap<string, GoValue>;
  /** What `index` returns for a key that it does not have. */
  readonly zero: GoValue;

  constructor(entries: Iterable<readonly [string, GoValue]>, zero: GoValue = null) {
    this.entries = new Map([...entries].toSorted(([one], [other]) => (one < other ? -1 : 1)));
    this.zero = zero;
  }
}

export type GoMethod = (...args: readonly GoValue[]) => GoValue;

/** A string with methods, such as a digest or a time. */
export class GoText {
  readonly text: string;
  readonly type: string;
  readonly methods: Readonly<Record<string, GoMethod>>;
  /** What JSON has in place of the text. */
  readonly json: string;

  constructor(
    text: string,
    { type, methods, json = text }: { type: string; methods: GoText["methods"]; json?: string },
  ) {
    this.text = text;
    this.type = type;
    this.methods = methods;
    this.json = json;
  }
}

export interface GoField {
  name: string;
  value: GoValue;
  /** The key in JSON. None: the fields of the value are those of this struct, too, as of an embedded struct. */
  key: string | undefined;
  omitsEmpty: boolean;
}

export class GoStruct {
  /** Go's name of the type: `v1.Descriptor`. */
  readonly type: string;
  readonly fields: readonly GoField[];
  readonly methods: Readonly<Record<string, GoMethod>>;
  readonly isPointer: boolean;

  constructor(
    type: string,
    fields: readonly GoField[],
    { methods = {}, isPointer = false }: { methods?: GoStruct["methods"]; isPointer?: boolean } = {},
  ) {
    this.type = type;
    this.fields = fields;
    this.methods = methods;
    this.isPointer = isPointer;
  }

  /** Returns the value of a field, also of one of an embedded struct. */
  get(name: string): GoValue | undefined {
    for (const field of this.fields) {
      if (field.name === name) return field.value;
      const inner =
        field.key === undefined && field.value instanceof GoStruct ? field.value.get(name) : undefined;
      if (inner !== undefined) return inner;
    }
    return undefined;
  }
}

/** Returns what JSON says as Go has it in an `interface{}`. */
export function fromJson(value: unknown): GoValue {
  if (Array.isArray(value)) return value.map(fromJson);
  if (typeof value === "object" && value !== null)
    return new GoMap(Object.entries(value).map(([key, each]) => [key, fromJson(each)]));
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  return null;
}

/** Go's truth: what is not the zero value of its type. */
export function isTruthy(value: GoValue): boolean {
  if (value === null || value instanceof GoNil) return false;
  if (value instanceof GoStruct) return true;
  const length = lengthOf(value);
  return length === undefined ? Boolean(value) : length > 0;
}

/** Returns what `len` does; `undefined` for a value that has no length. Strings have that of their UTF-8. */
export function lengthOf(value: GoValue): number | undefined {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (value instanceof GoText) return Buffer.byteLength(value.text);
  if (Array.isArray(value)) return value.length;
  if (value instanceof GoMap) return value.entries.size;
  return value instanceof GoNil && value.kind !== "pointer" ? 0 : undefined;
}

/** Returns Go's name of a value's type. */
export function goTypeOf(value: GoValue): string {
  if (value === null) return "<nil>";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return "int";
  if (typeof value === "number") return "float64";
  if (typeof value === "string") return "string";
  if (value instanceof GoStruct) return `${value.isPointer ? "*" : ""}${value.type}`;
  if (value instanceof GoMap) return value.zero === "" ? "map[string]string" : "map[string]interface {}";
  if (value instanceof GoText || value instanceof GoNil) return value.type;
  return "[]interface {}";
}
