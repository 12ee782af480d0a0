/** A request to the fake service, recorded for tests. */

export interface RecordedRequest {
  method: string;
  /** The path without the prefix and the query. */
  path: string;
  query: Record<string, string>;
  /** Headers with names in lower case. */
  headers: Record<string, string>;
  /** The parsed JSON body. */
  json?: unknown;
  /** The body, if it is raw bytes. */
  bytes?: { sha256: string; size: number };
  /** The number of unfinished requests when this one arrived, including itself. */
  inFlight: number;
  answered: boolean;
  /** The response's status. */
  status?: number;
}

export function record(request: Request, prefix: string, requests: RecordedRequest[]): RecordedRequest {
  const { pathname, searchParams } = new URL(request.url);
  const recorded: RecordedRequest = {
    method: request.method,
    path: pathname.startsWith(prefix) ? pathname.slice(prefix.length) : pathname,
    query: Object.fromEntries(searchParams),
    headers: Object.fromEntries(request.headers),
    inFlight: 0,
    answered: false,
  };
  requests.push(recorded);
  return recorded;
}

/** Returns the body as JSON, which is kept in the record; `undefined` if it is not JSON. */
export async function readJson(request: Request, recorded: RecordedRequest): Promise<unknown> {
  try {
    recorded.json = await request.json();
  } catch {
    recorded.json = undefined;
  }
  return recorded.json;
}
