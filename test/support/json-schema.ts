/** The part of JSON Schema that the tests use. */
export interface Schema {
  type?: "object" | "array" | "string" | "integer" | "boolean" | "null";
  const?: unknown;
  /** Matches if one of them does. */
  anyOf?: readonly Schema[];
  required?: readonly string[];
  properties?: Readonly<Record<string, Schema>>;
  /** The schema of other properties; `false` if there must be none. */
  additionalProperties?: Schema | false;
  items?: Schema;
  minItems?: number;
  minimum?: number;
  pattern?: string;
  format?: "date-time";
}

/** The parts of `value` that do not match the schema, each with its place. */
export function problemsOf(value: unknown, schema: Schema, place = "$"): string[] {
  const { anyOf, type, pattern, format, minimum, minItems } = schema;
  if (anyOf !== undefined) {
    const tries = anyOf.map((each) => problemsOf(value, each, place));
    return tries.some((problems) => problems.length === 0) ? [] : tries.flat();
  }
  if (type !== undefined && type !== typeOf(value)) return [`${place} is no ${type}`];
  if ("const" in schema && value !== schema.const) return [`${place} is not ${JSON.stringify(schema.const)}`];
  if (typeof value === "string") {
    const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value);
    if (format !== undefined && !isTime) return [`${place} is no ${format}`];
    if (pattern !== undefined && !new RegExp(pattern).test(value)) return [`${place} is not /${pattern}/`];
  }
  if (typeof value === "number" && minimum !== undefined && value < minimum)
    return [`${place} is below ${minimum}`];
  if (Array.isArray(value)) {
    const { items = {} } = schema;
    const few = value.length < (minItems ?? 0) ? [`${place} has less than ${minItems} items`] : [];
    return [...few, ...value.flatMap((each, index) => problemsOf(each, items, `${place}[${index}]`))];
  }
  return typeof value === "object" && value !== null ? problemsOfObject(value, schema, place) : [];
}

function problemsOfObject(value: object, schema: Schema, place: string): string[] {
  const { required = [], properties = {}, additionalProperties = {} } = schema;
  return [
    ...required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${place}.${name} is missing`),
    ...Object.entries(value).flatMap(([name, each]) => {
      const own = properties[name] ?? additionalProperties;
      return own === false ? [`${place}.${name} is not known`] : problemsOf(each, own, `${place}.${name}`);
    }),
  ];
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}
