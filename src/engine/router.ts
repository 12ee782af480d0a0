import { diskFailing } from "../service/wire/operation.ts";
import { describeFault, findDiskError, isDiskFull, meansUnwritable } from "./faults.ts";
import { errorResponse, RequestError } from "./http/responses.ts";
import type { EngineState } from "./state.ts";
import { MissingProgramError } from "./system/programs.ts";

/** The values of a path's parameters, by name. */
export type Parameters = Readonly<Record<string, string>>;

/** A request that was matched to a route. */
export interface RoutedRequest {
  state: EngineState;
  request: Request;
  url: URL;
  parameters: Parameters;
}

export interface Route {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** `:name` is a parameter: it matches one segment. */
  path: string;
  /** It also handles `HEAD`, whose response has no body. */
  respond: (call: RoutedRequest) => Promise<Response> | Response;
}

/**
 * Returns a function from request to response. Unknown paths, wrong methods and thrown errors become JSON errors. `prepare` is
 * called before each request that may change something.
 */
export function makeRouter(
  state: EngineState,
  routes: readonly Route[],
  prepare: () => Promise<void>,
): (request: Request) => Promise<Response> {
  const patterns = routes.map((route) => ({ route, expected: route.path.split("/") }));
  return async (request) => {
    // A request of HTTP/1.0 needs no Host header, and Bun returns only its path.
    const url = URL.parse(request.url, request.headers.has("Host") ? undefined : "http://localhost");
    if (url === null) return errorResponse(400, "invalid URL: check the request's path and Host header");
    const actual = url.pathname.split("/");
    const matches: { route: Route; parameters: Parameters }[] = [];
    for (const { route, expected } of patterns) {
      const parameters = matchPath(expected, actual);
      if (parameters !== undefined) matches.push({ route, parameters });
    }
    if (matches.length === 0) return errorResponse(404, `there is no ${url.pathname}`);
    const method = request.method === "HEAD" ? "GET" : request.method;
    const match = matches.find(({ route }) => route.method === method);
    if (match === undefined) {
      const allowed = matches.map(({ route }) => route.method).join(", ");
      return errorResponse(405, `${url.pathname} does not support ${request.method}`, { Allow: allowed });
    }
    try {
      // Nothing is read from a layer, or built on one, whose loss can't be recorded.
      state.layerSync.recordFailures();
      if (method !== "GET") await prepare();
      const response = await match.route.respond({ state, request, url, parameters: match.parameters });
      if (request.method !== "HEAD") return response;
      await response.body?.cancel();
      return new Response(null, { status: response.status, headers: response.headers });
    } catch (error) {
      return respondToError(error, state);
    }
  };
}

function respondToError(error: unknown, state: EngineState): Response {
  const { layout } = state;
  const fault = findDiskError(error, layout);
  const message = describeFault(fault, layout);
  if (error instanceof RequestError) return errorResponse(error.status, message, error.headers);
  if (error instanceof MissingProgramError) return errorResponse(501, message);
  if (!meansUnwritable(fault, layout)) return errorResponse(500, message);
  // With 507, clients do not repeat the request.
  return errorResponse(507, message, {}, isDiskFull(fault) ? {} : { reason: diskFailing });
}

function matchPath(expected: readonly string[], actual: readonly string[]): Parameters | undefined {
  if (expected.length !== actual.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [index, segment] of expected.entries()) {
    const value = actual[index] ?? "";
    if (segment.startsWith(":") && value !== "") parameters[segment.slice(1)] = normalizeId(decode(value));
    else if (segment !== value) return undefined;
  }
  return parameters;
}

/** Returns a UUID or hash in lower case, since some clients write them in upper case, and other text unchanged. */
function normalizeId(text: string): string {
  return /^(?:[\da-f-]{36}|[\da-f]{64})$/i.test(text) ? text.toLowerCase() : text;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
