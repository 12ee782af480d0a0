/**
 * A client made from the API's document alone: it refuses requests that are not in the document, and compares every response with
 * the schema of its status.
 */
import document from "./openapi.json" with { type: "json" };
import { findFaults, type Schema, type Schemas } from "./schema.ts";

export type Send = (request: Request) => Promise<Response>;

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed JSON, or the bytes of anything else. */
  body: unknown;
}

export interface CallParts {
  /** Values of the path's parameters. */
  path?: Readonly<Record<string, string | number>>;
  query?: Readonly<Record<string, string | number>>;
  headers?: Readonly<Record<string, string>>;
  json?: unknown;
  bytes?: Uint8Array;
  /** The expected error status; without it, the response must be a documented one. */
  error?: number;
}

interface Operation {
  parameters?: readonly Parameter[];
  requestBody?: { content: Readonly<Record<string, { schema: Schema }>> };
  responses: Readonly<Record<string, { content?: Readonly<Record<string, { schema: Schema }>> }>>;
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
}

const paths = document.paths as unknown as Readonly<
  Record<string, Readonly<Record<string, Operation>> & { parameters?: readonly Parameter[] }>
>;
export const schemas = document.components.schemas as unknown as Schemas;

/** The calls of the document, such as `GET /images`. */
export const documentedCalls: readonly string[] = Object.entries(paths).flatMap(([path, methods]) =>
  Object.keys(methods)
    .filter((method) => method !== "parameters")
    .map((method) => `${method.toUpperCase()} ${path}`),
);

/** Makes one of `documentedCalls`. Rejects if the request or the response does not match the document. */
export async function callDocumented(send: Send, call: string, parts: CallParts = {}): Promise<Answer> {
  const [method = "", path = ""] = call.split(" ");
  const operation = paths[path]?.[method.toLowerCase()];
  if (operation === undefined) throw new Error(`the document has no ${call}`);
  const allowed = [...(operation.parameters ?? []), ...(paths[path]?.parameters ?? [])];
  checkParameters(call, parts, allowed);
  const schema = operation.requestBody?.content["application/json"]?.schema;
  if (parts.json !== undefined && parts.error === undefined)
    requireNoFaults(`the request of ${call}`, findFaults(parts.json, schema ?? {}, schemas));

  const response = await send(makeRequest(method, path, parts));
  const type = response.headers.get("content-type") ?? "";
  const isJson = type.startsWith("application/json");
  const body: unknown =
    isJson && method !== "HEAD" ? await response.json() : new Uint8Array(await response.arrayBuffer());
  const { status, headers } = response;
  if (parts.error !== undefined) {
    if (status !== parts.error) throw new Error(`${call} answered ${status}, not ${parts.error}`);
    if (method !== "HEAD")
      requireNoFaults(`the error of ${call}`, findFaults(body, { $ref: "#/Error" }, schemas));
    return { status, headers, body };
  }
  const documented = operation.responses[String(status)];
  if (documented === undefined) throw new Error(`${call} answered ${status}: ${JSON.stringify(body)}`);
  for (const [expected, { schema }] of Object.entries(documented.content ?? {})) {
    if (!type.startsWith(expected)) throw new Error(`${call} answered with ${type}, not ${expected}`);
    if (isJson) requireNoFaults(`the answer to ${call}`, findFaults(body, schema, schemas));
  }
  return { status, headers, body };
}

function checkParameters(
  call: string,
  { path = {}, query = {}, error }: CallParts,
  allowed: readonly Parameter[],
) {
  const given = { path, query } as Record<string, Readonly<Record<string, unknown>>>;
  for (const [place, values] of Object.entries(given)) {
    for (const name of Object.keys(values)) {
      if (!allowed.some((parameter) => parameter.in === place && parameter.name === name))
        throw new Error(`${call} takes no ${name} in its ${place}`);
    }
  }
  for (const { name, in: place, required } of allowed) {
    if (error === undefined && required === true && given[place]?.[name] === undefined)
      throw new Error(`${call} needs ${name}`);
  }
}

function makeRequest(method: string, path: string, { path: values = {}, query = {}, ...parts }: CallParts) {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) parameters.set(name, String(value));
  const address = `http://service/v1${filled}${parameters.size === 0 ? "" : `?${parameters}`}`;
  const body = parts.json === undefined ? parts.bytes : JSON.stringify(parts.json);
  return new Request(address, {
    method,
    redirect: "manual",
    headers: {
      ...(parts.json === undefined ? {} : { "content-type": "application/json" }),
      ...parts.headers,
    },
    ...(body === undefined ? {} : { body }),
  });
}

function requireNoFaults(what: string, faults: readonly string[]): void {
  if (faults.length > 0) throw new Error(`${what}: ${faults.join("; ")}`);
}
