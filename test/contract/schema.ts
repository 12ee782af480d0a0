/** Values held against the schemas of the API's document: as much of JSON Schema as it uses. */

export interface Schema {
  $ref?: string;
  type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  nullable?: boolean;
  required?: readonly string[];
  properties?: Readonly<Record<string, Schema>>;
  additionalProperties?: Schema;
  items?: Schema;
  enum?: readonly unknown[];
  oneOf?: readonly Schema[];
  format?: string;
}

export type Schemas = Readonly<Record<string, Schema>>;

/** What is wrong with a value, each with its place in it; empty where it is as the schema says. */
export function findFaults(value: unknown, schema: Schema, schemas: Schemas, place = "$"): string[] {
  if (schema.$ref !== undefined) {
    const named = schemas[schema.$ref.split("/").at(-1) ?? ""];
    return named === undefined
      ? [`${place}: no schema ${schema.$ref}`]
      : findFaults(value, named, schemas, place);
  }
  if (value === null && schema.nullable === true) return [];
  if (schema.oneOf !== undefined) {
    const fits = schema.oneOf.some((one) => findFaults(value, one, schemas, place).length === 0);
    return fits ? [] : [`${place}: ${JSON.stringify(value)} is none of what it may be`];
  }
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return [`${place}: ${JSON.stringify(value)} is none of ${schema.enum.join(", ")}`];
  if (schema.type !== undefined && !isOfType(value, schema.type))
    return [`${place}: ${JSON.stringify(value)} is no ${schema.type}`];
  if (schema.format === "date-time" && Number.isNaN(Date.parse(String(value))))
    return [`${place}: ${JSON.stringify(value)} is not a date`];
  if (Array.isArray(value))
    return value.flatMap((item, index) =>
      findFaults(item, schema.items ?? {}, schemas, `${place}[${index}]`),
    );
  return isObject(value) ? findFaultsOfFields(value, schema, schemas, place) : [];
}

function findFaultsOfFields(
  value: Record<string, unknown>,
  { required = [], properties = {}, additionalProperties }: Schema,
  schemas: Schemas,
  place: string,
): string[] {
  const missing = required.filter((name) => !(name in value)).map((name) => `${place}.${name} is missing`);
  const faults = Object.entries(value).flatMap(([name, field]) => {
    const schema = properties[name] ?? additionalProperties;
    return schema === undefined ? [] : findFaults(field, schema, schemas, `${place}.${name}`);
  });
  return [...missing, ...faults];
}

function isOfType(value: unknown, type: NonNullable<Schema["type"]>): boolean {
  switch (type) {
    case "object":
      return isObject(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
