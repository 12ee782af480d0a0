/** Checks values against the schemas of the API's document. Supports the parts of JSON Schema that the document uses. */

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

/** Returns the faults of a value, each with its place in the value; empty if the value matches the schema. */
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
    return fits ? [] : [`${place}: ${JSON.stringify(value)} matches no allowed schema`];
  }
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return [`${place}: ${JSON.stringify(value)} is not one of ${schema.enum.join(", ")}`];
  if (schema.type !== undefined && !isOfType(value, schema.type))
    return [`${place}: ${JSON.stringify(value)} is not of type ${schema.type}`];
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
