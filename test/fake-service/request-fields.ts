/** Finds fields of a request that the API's document does not have. */
import { asRecord } from "../../src/service/http/json.ts";
import document from "../contract/openapi.json" with { type: "json" };

interface Schema {
  $ref?: string;
  properties?: Readonly<Record<string, Schema>>;
  additionalProperties?: Schema;
}

const schemas = document.components.schemas as Readonly<Record<string, unknown>>;

/** Returns the first such field, such as `stdin.foo`; `undefined` if there is none. */
export function findUnknownField(value: unknown, schema: string): string | undefined {
  return find(value, { $ref: schema }, "");
}

function find(value: unknown, given: Schema, place: string): string | undefined {
  const schema = resolve(given);
  const fields = asRecord(value);
  if (fields === undefined || (schema.properties === undefined && schema.additionalProperties === undefined))
    return undefined;
  for (const [name, field] of Object.entries(fields)) {
    const known = schema.properties?.[name] ?? schema.additionalProperties;
    const path = place === "" ? name : `${place}.${name}`;
    const unknown = known === undefined ? path : find(field, known, path);
    if (unknown !== undefined) return unknown;
  }
  return undefined;
}

function resolve(schema: Schema): Schema {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : (schemas[name] as Schema);
}
