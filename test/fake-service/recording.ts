/** What a test may ask about a request that the fake service got. */

export interface RecordedRequest {
  method: string;
  /** Without the prefix and the query. */
  path: string;
  query: Record<string, string>;
  /** Names in lower case. */
  headers: Record<string, string>;
  /** The parsed JSON body. */
  json?: unknown;
  /** A body of raw bytes. */
  bytes?: { sha256: string; size: number };
  /** Requests that were not answered yet when this one came, itself included. */
  inFlight: number;
  answered: boolean;
  /** Of the answer. */
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

/** The body as JSON, kept in the record; `undefined` where it is none. */
export async function readJson(request: Request, recorded: RecordedRequest): Promise<unknown> {
  try {
    recorded.json = await request.json();
  } catch {
    recorded.json = undefined;
  }
  return recorded.json;
}
